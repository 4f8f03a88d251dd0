"""A small engine with banks: its work, and the replay of its programs."""
