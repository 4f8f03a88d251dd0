"""F11 fusion: the referee of groups of layers that run strip by strip."""
