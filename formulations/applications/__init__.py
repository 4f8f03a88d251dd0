"""Mapping of several applications."""
