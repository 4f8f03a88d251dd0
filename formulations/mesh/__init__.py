"""Mesh: how a layer runs on a mesh of tile units, and on the systolic and row-stationary arrays beside it.

Sets
    d in D      indices of the NDRange (`instances.network.ndrange`): parallel or temporal; x in {IN, W} its operands
    units       R x C of them; a unit works on 32 parallel points a cycle (teu), the others on one
Given
    size[d]; the affine axes of x; whether x depends on d (its derivative is not zero)
    bytes of an element of IN, W, OUT and of a partial sum; buffer bytes; rates in bytes per cycle
Variables
    T[d]        the tile of a unit (teu) or of the global buffer (arrays), 1 .. size[d]
    rows, cols  the parallel index whose tiles lie side by side along the mesh; systolic: rows is temporal, cols is m
    P[d]        the shape of the PE vector: powers of two over parallel indices (teu). Of those of size 1, along which
                all but one idle, the first is enough, for sides too: `formulations.mesh.space.movable` has the proof
    share       the operands that go from unit to unit through FIFOs (teu)
    keep        the operand whose tile stays while the next one is the same; "none": all are fetched at every step
    filters, channels   what a PE holds (row_stationary)
Derived (teu), with side[d] the units along d (1, R, C or R*C), trips[d] = ceil(size[d] / T[d])
    fetched[x] = product over axes of x of (sum over tiles of what lies inside the tensor)
                 * product over d that x does not depend on of often[d]
    often[d]   = ceil(trips[d] / side[d]) if x is shared, trips[d] if not; kept: 1, or min(side[d], trips[d])
    bytes      = in*fetched[IN] + w*fetched[W] + out*results: the same in DRAM and global buffer, which only streams
    cycles     = product over parallel d of (sum over mesh steps of ceil(tile of the first unit / P[d]))
                 * product over temporal d of size[d]
    Arrays: the same DRAM bytes with side = 1, where T is a tile of the global buffer; global-buffer bytes and cycles
    as `formulations.mesh.price` counts them.
Objectives
    min dram [bytes]; min glb [bytes]; min time [cycles] = max(cycles, dram / rate, glb / rate), each rounded up: the
    roofline; or several, the first one first
Constraints
    (INPUT)   copies * bytes of a tile of x <= its input buffer                                       (teu)
    (PSUM)    psum * product of parallel T <= PSum buffer; sums stay until they are complete, so that temporal loops
              are innermost and a result is written once                                              (teu)
    (GLOBAL)  copies * input tiles + partial sums <= global buffer                                    (arrays)
    (LOCAL)   what a PE holds <= its scratchpad                                                       (row_stationary)
    (VECTOR)  product of P = PEs of a unit                                                            (teu)
    (SIDES)   one index along the rows, one along the columns; both may be the same
    (KEEP)    only if the temporal tile is whole; the loops that the kept operand depends on are outermost
    (BANKS)   a layout without bank conflicts fits the input buffers: `formulations.mesh.finish`      (teu)
Candidates
    For each group of indices ((r, i), (c, j), the others alone) the options that no other one beats in every table
    entry, tile extents included. All prices and demands grow with each entry, so nothing optimal is lost; a layout of
    a larger tile is one of a smaller tile, so (BANKS) loses nothing either. An operand that is not shared is never
    fetched less often: share is not searched unless it is pinned.
Optimal means
    No other choice of the variables has a smaller objective. Fetches of the box around a tile; FIFOs pass a tile on
    while it is used (32 words a cycle: a tile has no more words than its use takes cycles) and never hold one up.
    Reuse is by index: that two units, or two steps, could need the same box for other values of r and i is not used.

Source: `vectormesh` Eq. 1 to 6, sections II-B, II-C and III-B. That a tile may stay (keep) is ours.
"""
