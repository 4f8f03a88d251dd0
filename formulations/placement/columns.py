"""The tables that the search for addresses reads.

Rows and tables of whole numbers, `formulations.placement.packing.Packing` makes them:

    boxes   (buffers, 8)  columns `BEGIN` .. `AFTER` below
    high    (..)          bytes that buffer b takes in section s, at ``boxes[b, START] + s - boxes[b, BEGIN]``
    links   (.., 2)       buffers that share no bank with b, in rows ``boxes[b, FIRST]`` to before ``boxes[b, AFTER]``,
                          and the most bytes that they take while b takes some, too
    limits  (4,)          `CAPACITY`, `BANK` bytes, `NODES` that were visited, the `MOST` nodes
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
#: Columns of boxes: sections, the begin of its bytes, the most of them, what its address is a multiple of, the address
#: that it has to have (-1: none), and the rows of its links.
BEGIN: Final = 0
END: Final = 1
START: Final = 2
SIZE: Final = 3
ALIGN: Final = 4
FIXED: Final = 5
FIRST: Final = 6
AFTER: Final = 7
CAPACITY: Final = 0
BANK: Final = 1
NODES: Final = 2
MOST: Final = 3
