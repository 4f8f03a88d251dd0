"""The library of instances, checked without a solver (`instances.commons` has the format, `tests/library` makes it)."""
