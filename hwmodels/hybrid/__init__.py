"""Hybrid: groups of stages run piece by piece: the stages of a piece, and the replay of plans."""
