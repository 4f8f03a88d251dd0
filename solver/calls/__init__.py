"""The calls of Python: solve, pareto, explain, show, check."""
