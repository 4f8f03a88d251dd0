"""Plans of the problem ``banks``: solved, checked, shown."""
