"""Fusion: groups of layers that run strip by strip, and what stays on chip between groups; groups of one layer: joint.

The problem is stated in `space`; `problem` and `part` are what is asked and how it is searched (`Cuts`).

Groups of layers: `groups` (which are legal, the maps that they pass on), `strips` (fronts of rows and columns),
`memory` (bytes on chip, weights, turns), `pins` (which groups are asked for), `arcs` (their options, priced for every
room).
Layers by themselves: `nests` (problem joint: bounds, searches of tiling, arcs).
Both: `tables` (bounds made exact where the best path relies on them; heuristics), `paths` (the least path, exactly),
`linear` (the same as rows for solvers), `schedule` (paths as runs; prices), `group_time` (ticks of a group's pieces),
`steps` (steps and transfers of runs). Time with prefetch: the folder `latency`.
The referee is `hwmodels.fusion.replay`.
"""
