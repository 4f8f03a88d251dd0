"""Fusion: the referee of groups of layers that run strip by strip."""
