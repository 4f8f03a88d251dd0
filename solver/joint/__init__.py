"""Problem joint."""
