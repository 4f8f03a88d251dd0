"""A mesh of tile units, and arrays: their replays."""
