"""The library of instances: made, checked without a solver, and measured (`instances.commons` has the format)."""
