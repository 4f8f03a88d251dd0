"""Machines with memory banks: closed forms (`clock`, `columns`, `steps`), and the replay of bank programs, on its own.

`replay` follows banks and columns and `replay_units` writes down the units of work; `replay_time` and `replay_cycles`
follow these in time, each on its bus.
"""
