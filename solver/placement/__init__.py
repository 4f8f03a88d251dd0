"""Problem placement."""
