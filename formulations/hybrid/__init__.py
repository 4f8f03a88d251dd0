"""Hybrid: fusion in memory banks: groups of stages, each whole or in pieces, with a bank program for every piece.

Example
    Two convolutions of 3x3 over 64 columns, 3 banks of 16 columns each. Whole, two of the four tiles between stay on
    chip, 34 columns go to DRAM and come back. In two pieces of 32 columns 33 columns are between: two in each piece go
    to DRAM, but weights are loaded twice, and four more columns of the input (docs/hybrid.md has the bytes).

Sets
    T stages in the network's order; groups [a, b); grids (w, h): columns and rows of a piece of the last map of a
    group, ``ceil(W / k)`` by ``ceil(H / j)`` for all k and j; pieces p of a group in a grid
    (`instances.network.pieces`)
Given
    for a piece the bank programs (`formulations.banks`), from empty banks to empty banks: bytes, ticks
Variables
    groups that cover the stages; of every group the grid; of every piece a program
Objective
    min sum over pieces of bytes, or of ticks
Constraints
    (MERGE)                 two groups in one piece do not follow each other
    (LENGTH)                a group in several pieces has at most 8 stages, unless a pin says otherwise
    (WHOLE), (SUM), (ONCE)  which groups have pieces (`instances.network.pieces`)
    those of problem `banks` for every piece, and pins
Optimal means
    No other choice of these variables costs less. Costs of pieces add up, so it is a shortest path over cut points
    whose arcs are made exact as needed (search.py: `Chain`; space.py); with caps, labels of both measures (`Fronts`).
Left out
    what stays on chip from piece to piece, or between groups of which one is in pieces; pieces of unequal size

bounds.py has lower bounds and what pieces cost, space.py pins and options, problem.py published techniques; for CP-SAT
and MILP chains of options are a flow (`formulations.rows`). Replay: `hwmodels.hybrid.replay`.

Source: `heterogeneous_mapping_and_banks` 4.3, 4.4.5; cuts anywhere, rows and proofs are ours.
"""
