"""F1 tiling and F2 slicing: the nest of one layer."""
