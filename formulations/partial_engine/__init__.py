"""Partial engine: the runs of a layer on a small engine, in which order, and where maps lie in its banks meanwhile.

Sets
    strips s = 1..S of `rows` output rows each; input groups i in 0..I-1 of e_in maps, output groups o in 0..O-1 of
    e_out maps; runs (i, o), all I*O of them in every strip; map k of any group lies in bank k
Given
    bank        bytes of a bank
    a, p        bytes of a bank that a group of input maps takes, and a group of partial maps, in the tallest strip
    load[i]     bytes that input group i moves into the banks, over all strips (real maps only)
    swap[o]     bytes of storing the partial maps of o and of loading them again, over all strips
    weights     bytes of all kernels: every strip reads each of them once, in the one run that uses it
    results     bytes of all results, stored once
    fresh       1 if partial maps are added in steps of their own and I > 1, else 0
Variables
    rows; x places for input groups and y for partial groups in every bank, and one for fresh partial maps if fresh;
    the order of the runs; the places' contents between runs
Objective
    min DRAM bytes  weights*S + results + sum_i load[i]*visits(i) + sum_o swap[o]*(visits(o) - 1)
    where visits(i) counts how often i is loaded, visits(o) how often o gets a place (the first time costs nothing)
Constraints
    (BANK)   x*a + (y + fresh)*p <= bank
    (READ)   run (i, o) reads i from a place: it has been loaded
    (ADD)    run (i, o), if not the first one of o, writes the fresh place; then o, which has to be in a place, becomes
             the sum of both. The first one writes into the place of o
    (KEEP)   o leaves its place only when it is stored: for good once all runs (., o) are added, else to come back
    (ONE)    of every output group there is one sum of partial maps at a time, in a place or in DRAM
    (PORT)   in a cycle a bank is read once and written once: a group has its maps in different banks; an addition, two
             groups of which lie in the same banks, takes two cycles a pixel
    (CHAIN)  only if asked for: all input groups of the layer lie in the banks before (x = I, one strip, no loads), or
             all results stay there (y = O, one strip, nothing stored); grids then have places of their own
Candidates
    rows: the fewest for every number of strips, and more only where fewer input rows are read twice (a cut so near to
    the border that its halo is padding) or the tallest input strip is lower. x: the most for every y, since a
    further place never costs bytes.
Assumes
    Every strip runs the same program. Places do not move within a layer: no fragments.
Optimal means
    No other strips, places, order and contents move fewer bytes. That there are (I*O)! orders does not matter: bounds
    that hold for all of them (`formulations.partial_engine.bounds`) are met by orders in passes
    (`formulations.partial_engine.orders`). Where they are not met the answer is FEASIBLE with the gap.

Source: `partial_cnn_engine` V (banks), V.I (runs, additions, padding, results that stay in the banks); strips, places
and transfers are ours, the paper does not say what happens if maps do not fit.
"""
