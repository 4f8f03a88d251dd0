"""Machines whose on-chip memories stand in levels: schedules of a layer, what they cost, and the referee."""
