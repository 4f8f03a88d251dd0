"""The library of instances, checked without a solver (`instances.library_format` is its format)."""
