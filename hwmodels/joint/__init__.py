"""A network in a shared memory: its replay."""
