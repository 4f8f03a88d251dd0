"""F6 banks: feature maps of a whole network in memory banks, for DRAM bytes, time, or the exact front of both.

Example
    Two layers, four banks: of the first one's result two tiles stay on chip; the second one reads them from there, and
    loads the rest tile by tile as banks become free.

Inside a stage (a layer), from what a program costs to the search for the best one
    `tasks` (what a program may do), `stage` (fewest bytes), `timing` and `labels` (what it costs in time), `cycles`
    (the same cycle by cycle), `search` (all undominated programs), `programs` (of all tasks at once),
    `overtaking` (where weights overtake loads)
Between stages
    `states` and `network` (what stays on chip, which stage is next), `graph` (fewest bytes), `times`, `bounds`,
    `onward` and `front` (least time, and the front), `milp` and `cp_sat` (the same states as arcs of a flow)
Heuristics
    `policies`, and the published one as its authors' compiler has it: `published`, `published_paths`, `published_stage`
Numbers of banks
    `numbers`

Replay: `hwmodels.banks.replay.referee`. Source: `heterogeneous_mapping_and_banks`, chapter 4.
"""
