"""Guards and limits in the bytes that steps leave, one transfer after the other (`formulations.prefetch.guards`).

Rows by transfer: `load` (1, or 0 for a store), `fixed` (the step that a load is due in, or that releases a store),
`size` (bytes), `ready` (the first guard that a load may have), `queue`; `when` (guard or limit) is written. `order` has
transfers by number, `left` the bytes that each step leaves, a step is its index; `ahead` has a 0 for each queue.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwmodels.compiled import compiled

Ints = NDArray[np.int64]


@compiled
def lie(order: Ints, when: Ints, load: Ints, fixed: Ints, size: Ints, left: Ints) -> None:
    """Take what lies beside steps from what they leave."""
    for k in order:
        first = when[k] if load[k] else fixed[k] + 1
        end = fixed[k] if load[k] else when[k]
        for t in range(first, end):
            left[t] -= size[k]


@compiled
def raised(order: Ints, when: Ints, load: Ints, fixed: Ints, queue: Ints, ahead: Ints) -> None:
    """Raise guards to the most of those ahead in their queue, and behind stores to the step after their release."""
    for k in order:
        q = queue[k]
        if load[k]:
            when[k] = ahead[q] = max(ahead[q], when[k], 1)
        else:
            ahead[q] = max(ahead[q], fixed[k] + 1)


@compiled
def lowered(
    order: Ints, when: Ints, load: Ints, fixed: Ints, size: Ints, ready: Ints, queue: Ints, ahead: Ints, left: Ints,
) -> None:  # fmt: skip
    """Lower guards one after the other, as far as memory has room, not below those ahead in their queue."""
    for k in order:
        q = queue[k]
        if load[k]:
            guard, low = when[k], max(ahead[q], ready[k], 1)
            while guard > low and left[guard - 1] >= size[k]:
                guard -= 1
                left[guard] -= size[k]
            when[k] = guard
            ahead[q] = max(ahead[q], guard)
        else:
            ahead[q] = max(ahead[q], fixed[k] + 1)


@compiled
def later(stores: Ints, when: Ints, size: Ints, most: Ints, left: Ints) -> None:
    """Raise limits one after the other, as far as memory has room, at most to `most`."""
    for k in stores:
        limit = when[k]
        while limit < most[k] and left[limit] >= size[k]:
            left[limit] -= size[k]
            limit += 1
        when[k] = limit


@compiled
def sooner(order: Ints, when: Ints, load: Ints, fixed: Ints, queue: Ints, ahead: Ints, after: Ints) -> None:
    """Lower limits to the first step that begins when the store has ended (`after`), behind what is ahead of it."""
    for k in order:
        q = queue[k]
        if load[k]:
            ahead[q] = max(ahead[q], when[k])
        else:
            least = max(fixed[k], ahead[q]) + 1
            when[k] = min(when[k], max(least, after[k]))
