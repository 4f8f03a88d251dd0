"""Machines with memory banks: closed forms (`hwmodels.banks.steps`), and the replay of bank programs, on its own.

`hwmodels.banks.replay.referee` follows banks and columns, with the units of work that `hwmodels.banks.replay.time`
writes down and follows in time.
"""
