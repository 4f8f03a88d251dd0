"""Drivers of solvers: models are built elsewhere, and solved here."""
