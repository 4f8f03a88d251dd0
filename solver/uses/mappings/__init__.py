"""Mappings that people write or other tools made: read, priced, compared with the optimum, and written again.

`text` has certile's own line of a nest; `timeloop`, `zigzag` and `dory` the files of these tools, all by way of the
levels of loops in `levels`. `price` makes a plan of a mapping, `compare` says why it moves more than the optimum,
`improve` what keeping a part of it costs.
"""
