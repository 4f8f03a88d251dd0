"""What is to be decided: one module per decision problem, with its CP-SAT and MILP models."""
