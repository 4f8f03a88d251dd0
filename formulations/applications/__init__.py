"""F5 mapping of several applications."""
