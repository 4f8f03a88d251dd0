"""Problem mapping."""
