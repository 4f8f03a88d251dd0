"""Makers of the library: cases as data, and what asks the engines; `solver.uses.library` checks what they made."""
