"""Fusion: groups of layers that run strip by strip, and what stays on chip between groups."""
