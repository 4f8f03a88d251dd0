"""Homes: where maps and weights lie off the chip."""
