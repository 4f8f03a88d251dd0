"""Placement: memory and address of every buffer, so that none overlap while they live.

Sets        buffers b; memories m, in the order of preference; times t, whole numbers; pairs F that share no bank
Parameters  low[b,t] <= high[b,t]  bytes that b takes at t, counted from its first one; nothing outside of its life
            size[b]                the most of high; align[b]; maybe offset[b], an address it has to have
            may[b]                 the memories where it may lie, the preferred first (all, all alike, if none is named)
            spill[b]               bytes that move if it lies off the chip; none: it has to be on chip
            cap[m], bank[m]        bytes of a memory, and of its banks (cap[m] if it has none)
Variables   x[b,m] in {0, 1}       b lies in m;  a[b] >= 0  its address;  top[m]  bytes of m that are used
Objectives  bytes       min sum of spill[b] over the b off the chip
            preference  min sum over x[b,m] = 1 of size[b] * (how many memories of may[b] are preferred to m)
            peak        min sum over m of top[m]
Constraints (ONE)   sum over m of x[b,m] <= 1, = 1 without spill[b]; x[b,m] = 0 for m not in may[b]
            (ROOM)  a[b] + size[b] <= top[m] <= cap[m] where x[b,m] = 1
            (ALIGN) a[b] is a multiple of align[b]; (FIXED) a[b] = offset[b] where that is given
            (APART) b, c in one memory, at a time t in which both take bytes: a[b] + high[b,t] <= a[c] + low[c,t],
                    or the reverse
            (BANKS) the same for pairs of F, with the left side rounded up to the next bank, the right side down

An example: a lives at times 0 and 1 with 4 bytes, b with 6 and then 2, c at time 1 with 4. In 10 bytes a lies at 0, b
at 4, and c at 6: when b has lost its last 4 bytes there is room behind it. 9 bytes are not enough: at time 0 a and b
take 10.

Optimal means: no other memories and static addresses are better. A buffer does not move while it lives, and is not cut.

Engines
    search    By Benders: a master model of x and top knows only how many bytes are alive at a time
              (cp_sat.py). What it puts in a memory is packed by an exact search (search.py, peak.py). What does not
              fit is a cut: not all of these in this memory, or top[m] at least so much if they are; of what does not
              fit only a part that by itself does not. With one memory and nothing to leave out there is no master.
    cp-sat    Rectangles of times and addresses for every memory a buffer may lie in, and bytes by time
    milp      Which of two lies below, with big M: for small instances

Source: MiniMalloc's files and search (M. D. Moffitt, ASPLOS 2023); the rest is ours.
"""
