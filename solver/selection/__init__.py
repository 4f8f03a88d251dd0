"""Problem selection."""
