"""What is to be decided: one folder for every decision problem, with its CP-SAT and MILP models."""
