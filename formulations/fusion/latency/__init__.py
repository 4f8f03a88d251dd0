"""Time of networks with prefetch (problem F12): groups of layers, and what stays on chip, for the least latency.

`products` (steps as max-plus matrices), `options` (how groups may run, each with its matrix), `paths` (the least
latency over cuts by labels), `bounds` (what no plan is below), `timelines` (the time of a plan), `search` (all of it).
"""
