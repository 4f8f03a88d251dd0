"""Machines: their file, its sections and fields, and what was measured on them."""
