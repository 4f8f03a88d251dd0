"""Problem applications."""
