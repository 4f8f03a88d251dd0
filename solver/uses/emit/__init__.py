"""C code that carries a plan out: dependency-free C11, one static array for every memory of the machine.

Example
    A layer whose plan is ``W | r | IN | OUT`` becomes a function: it loads all weights, then for every piece of rows
    loads (or slides) the rows of its input, computes, and stores the rows of its result. Every transfer goes through
    ``certile_dma.h``, whose default copies and counts; what it counts equals the plan's calls, segments and bytes.

numbers.py says what elements are and how they are added, nest.py writes the loops and transfers of a nest and what is
computed on the tiles, program.py and network.py put files together. levels/ has layers on memories in levels,
whose tiles are moved from each memory to the next by channel.
"""
