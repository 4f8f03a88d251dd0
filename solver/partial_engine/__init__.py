"""Problem engine."""
