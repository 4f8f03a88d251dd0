"""Mappings that people write or other tools made: read, priced, compared with the optimum, and written again.

text.py has certile's own line of a nest; timeloop.py, zigzag.py and dory.py the files of these tools, all by way of the
levels of loops in levels.py. price.py makes a plan of a mapping and says what keeping a part of it costs, compare.py
why it moves more than the optimum. For machines with memories in levels stays.py has the line, and the way from levels
and lists of loops to nests and back; accelforge.py the files of AccelForge, in_levels.py prices.
"""
