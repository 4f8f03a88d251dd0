"""Mapping: the processors of a network's tasks."""
