"""Layers as other tools write them: Timeloop, ZigZag, DORY."""
