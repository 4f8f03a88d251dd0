"""Levels: one layer on a machine whose on-chip memories stand in levels, decided together.

Sets
    X in {IN, W, OUT} that the layer has; d the dimensions of its loop (`instances.network.workload`)
    l = 0 .. L  memories from far to near (`instances.machine.levels`); 0 is off the chip
    (l, X)      Stays: X lies in memory l; in all memories l >= 1 that hold X, but those that X may pass
Given
    bytes and reserved bytes of memories; of memory l, for what moves between it and nearer ones, the price of a
    transfer and of a byte in ticks and fJ; bytes of elements; lanes of the MAC array
Variables
    order       the Stays, outermost first, (l, X) outside (l', X) for l < l'
    passed      which of the Stays that may be left out are
    t[d, k]     step of the loop over d directly before Stay k, for d that its operand depends on; kernel rows and
                columns (i, j) only inside the Stays of IN
    slide[k]    along what IN slides at Stay k: rows or columns (machines with `sliding`)
Derived, with n[d, k] the pieces that the loops over d outside Stay k make, in equal steps, the last piece smaller
    bytes[k]    W: |W| * n[b] * n[r] * n[c]; IN: |IN| per pixel * n[m] * rows * columns of all windows; OUT: |OUT| *
                (out + 2 * psum * (n[n] * n[i] * n[j] - 1)); moved between Stay k's memory and its source, the memory of
                the next farther Stay of its operand, or 0 (`hwmodels.levels.price`)
    tile[k]     bytes of the largest piece of the operand
Objectives
    min bytes@M = sum of bytes[k] over k with source M; bytes: of M = 0; energy; time, transfer after transfer, or
    where they overlap bounded by the PEs and every queue (`formulations.levels.terms`); or several, the first one first
Constraints
    (MEMORY l)  reserved + sum of tile[k] over Stays in l <= bytes of l
Candidates
    Orders: `formulations.levels.orders` has the argument that loops stand only where an operand that depends on them
    stays next. Steps: `formulations.levels.chains`. Both levels are in one nest: Stays of a far memory may stand inside
    those of a near one.
Optimal means
    No nest of the family is better, whatever its order, loops and steps, the loops over the kernel inside the Stays of
    IN. Outside it: pieces of free sizes, lines, and kernel loops around IN (docs/levels.md says what these are worth).
    Several loops make pieces of free sizes, too, which counts where padding clips windows, and in rounds of lanes: of
    eight rows, steps of 5 and then of 3 make 3, 2, 3. Of two such loops with no Stay between them that depends on the
    dimension the inner one alone is looked at; of dimensions of more than 28 also where no Stay between them counts
    pieces, and of chains with as many pieces those with larger steps are left out, though padding may make their
    largest window smaller.
    Where a dimension has too many chains to list, steps are taken from fewer, and the bound is one over all chains; it
    is OPTIMAL if the bound is met.
"""
