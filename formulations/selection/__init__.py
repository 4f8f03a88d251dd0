"""Selection: a variant for every layer, where the pipeline is cut, clocks and input size.

Example
    Tucker decomposition makes large layers faster and small ones slower, and costs accuracy; 16 bits help late layers,
    and every border of a region in 16 bits takes a conversion. Which layers get which, if accuracy may fall by 2 %?
Frames
    A frame is an input size, a frequency, a set of cuts, and of a board the configuration of its cores: what scales or
    merges everything else. Each one is a piece; the sets below are those of one frame.
Sets
    layers i in topological order, edges (i, j): j reads the map of i; options o of a layer, each on one stage(o) and of
    one element type(o); the state of an option is (stage, type); threads: runs of stages between cuts
    quantities q: busy ticks of each stage, loss [ppm of accuracy], memory [bytes], a budget each
Given
    takes[i][o][q]      of an option; its ticks are scaled by size and frequency, and rounded
    convert[i][u][t]    ticks of the stage in u to convert the map of i, made in state u, to type t, once for all
    hand[i, j][u][v]    of an edge between states: ticks of both stages and buffer bytes if they are different threads,
                        `serial_ns` if they are different stages of one thread
    base, mw[stage]     power at the frequency, of the board and of a working stage
    A                   accuracy of the size [ppm]
Variables
    x[i][o] = 1         layer i is option o: sum over o of x[i][o] = 1
Derived
    total[q] = sum of takes of all chosen options, converts and hands that they make necessary
    work[s] = total[stage s];  load[thread] = sum over its stages of work[s]
    accuracy = A - total[loss]
Objectives, each to be minimised
    period  = max over threads of load                                                            [ticks]  (Fig. 3.2)
    time    = sum over stages of work: an image alone, one layer after the other                   [ticks]
    energy  = base * period + sum over s of mw[s] * work[s], of one image                          [fJ]
    error   = 10^6 - accuracy                                                                      [ppm]
    memory  = total[memory]                                                                        [bytes]
    score   = floor(energy / accuracy): energy for an accuracy of 1, so that the least one has the most accuracy
              for its energy (the LPIRC score, 3.1)                                                [nJ]
Constraints
    memory and budgets of the platform; accuracy >= 1 ppm; limits of any objective; pins; types without a conversion do
    not meet
Normal form (frame.py)
    Every objective is the largest of some rows, every constraint a row with a limit; a row is const + weights @ total.
    energy = max over threads of (base * load + sum of mw * work): the period is the largest load. score <= k says
    energy - (k + 1) * accuracy <= -1, linear for a given k: a better schedule is asked for until there is none
    (`formulations.selection.part.Whole.steps`; Dinkelbach's method in integers). So all engines know nothing but rows.
Engines
    search, dynamic     labels through the network, layer by layer (search.py); then CP-SAT if they grow too many
    cp-sat, milp        cp_sat.py, milp.py; exhaustive
Optimal means
    No other choice of size, frequency, cuts and options has a smaller objective. Times of a layer depend on its own
    option alone, and losses add up: that is what a profile of layers measures, and what it leaves out.
On a board (boards.py)
    Stages are processors, all of them threads: mapping with variants; period and energy are those of Eq. 3.7, 3.8.

Source: `heterogeneous_mapping_and_banks` 3.1.3, 3.2.1.2 (Tables 3.4 to 3.8, Fig. 3.2, 3.8, 3.12).
"""
