"""Problem slicing: layers on clusters of cores."""
