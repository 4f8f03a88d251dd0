"""F5 mapping: the processors of a network's tasks."""
