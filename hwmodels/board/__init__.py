"""Processors of a board: times of tasks, and the replays of mappings."""
