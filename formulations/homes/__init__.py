"""Homes: the off-chip memory of every feature map and of every layer's weights."""
