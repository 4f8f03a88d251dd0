"""Banks: feature maps of a whole network in memory banks, for DRAM bytes, time, or the exact front of both.

Example
    Two layers, four banks: of the first one's result two tiles stay on chip; the second one reads them from there, and
    loads the rest tile by tile as banks become free.

Inside a stage (a layer), from what a program costs to the search for the best one
    `hwmodels.banks.steps` (control steps, cycles, clock), tasks.py (what a program may do), stage.py (fewest bytes),
    timing.py and labels.py (what it costs in time), cycles.py (the same cycle by cycle), search.py (all undominated
    programs, of all tasks at once), overtaking.py (where weights overtake loads)
Between stages
    network.py (what stays on chip, which stage is next, fewest bytes), times.py, bounds.py and front.py (least time,
    and the front); for CP-SAT and MILP the same states are arcs of a flow (`formulations.rows`)
Heuristics
    policies.py, and the published one as its authors' compiler has it: published.py, published_stage.py
Numbers of banks
    numbers.py
The problem
    readings.py (how the first layer is read), problem.py (what is asked and decided)

Replay: `hwmodels.banks.replay.referee`. Source: `heterogeneous_mapping_and_banks`, chapter 4.
"""
