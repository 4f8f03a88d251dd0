"""A trial formulation: whose weights stay on chip from one inference to the next.

Sets        L layers with weights.   Parameters  w[l] bytes of weights, C bytes on chip, K inferences.
Variables   x[l] in {0, 1}: the weights of l stay.
Objective   bytes: sum over l of w[l] * (K - (K - 1) * x[l]);  room: sum over l of w[l] * x[l]
Constraint  (ROOM) sum of w[l] * x[l] <= C

By hand, w = (3, 4, 5), C = 7, K = 10: {3, 4} stay, 7 + 50 = 57 bytes move; {5} leaves 75.
"""

from tests.knapsack.problem import Knapsack

__all__ = ["Knapsack"]
