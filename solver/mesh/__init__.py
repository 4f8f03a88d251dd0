"""Problem mesh."""
