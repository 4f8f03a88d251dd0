"""Makers of the library: cases as data, and what asks the engines; `solver.library` reads and checks what they made."""
