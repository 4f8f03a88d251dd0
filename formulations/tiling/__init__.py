"""Tiling and slicing: the nest of one layer."""
