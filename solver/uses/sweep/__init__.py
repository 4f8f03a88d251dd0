"""Sweeps: grids of questions, solved by many processes into one file that survives every interruption."""
