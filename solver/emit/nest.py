"""The C file of a layer: its buffers and tiles, what a step computes, the transfers, the loops.

For every set of fetch points that cores have there is one function: of a core with less work a loop may cut nothing, so
that another one is the innermost that an operand depends on. Cores run one after the other.

Double buffering
    A step is computed one step late: its loads have been started, then the step before is computed, then all transfers
    are waited for. An operand with one buffer is loaded after the late step. A tile of OUT is stored after its last
    step, and its buffer is written again only by steps that come after another wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from instances.workload import DIMS
from solver.emit import loads, results
from solver.emit.frame import Frame
from solver.emit.loops import Loops
from solver.emit.places import Places
from solver.emit.step import StepCode
from solver.emit.text import block, call, comment, function, indented
from solver.tiling.pseudo_code import pseudo_code


def layer_file(frame: Frame, name: str, includes: Sequence[str] = ()) -> str:
    """Return the C file of a layer; `name` is that of its function.

    Raises
    ------
    InputError
        If the nest is malformed for the layer.
    """
    places = Places(frame)
    text = f"{frame.layer.name} on {frame.machine.name}\n\n{pseudo_code(frame.layer, frame.machine, frame.nest)}"
    parts = [
        [f"#include {file}" for file in ('"certile_dma.h"', '"certile_lines.h"', *includes)], comment(text),
        places.lines(), loads.state(frame),
        StepCode(frame, places).lines(), results.evict(frame, places), results.compute_late(frame),
        *(loads.load_in(frame, places, lacks) for lacks in frame.patterns),
        loads.load_w(frame, places), loads.load_weights(frame, places), results.close_out(frame),
        results.open_out(frame, places), results.run(frame),
        *(Loops(frame, points).function(f"core_{k}") for k, points in enumerate(frame.kinds)),
        _entry(frame, places, name),
    ]  # fmt: skip
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _entry(frame: Frame, places: Places, name: str) -> list[str]:
    """The function that runs all cores, one after the other."""
    arguments = ["unsigned char *const in[]", "unsigned char *w", "unsigned char *bias", "unsigned char *out",
                 "unsigned char *psum"]  # fmt: skip
    body = places.bind()
    body += call("load_weights", []) if frame.kept_w and frame.kept_w.loads else []
    if len(frame.cores) == 1:
        body += [*loads.reset(frame), *call("core_0", [])]
        return function(f"void {name}", arguments, body)
    rows = []
    for core in frame.cores:
        ranges = [str(end) for d in DIMS if d in frame.moving for end in core.range(d)]
        rows.append(", ".join([str(frame.kinds.index(frame.points(core))), *ranges]))
    number = 1 + 2 * len(frame.moving)
    body += [
        f"/* Cores: the kind of their loops, then their ranges of {' '.join(frame.moving)}. */",
        f"static const int share[{len(rows)}][{number}] = {{", *indented(f"{{{row}}}," for row in rows), "};",
    ]  # fmt: skip
    ranges = [f"s[{k}]" for k in range(1, number)]
    runs = ["const int *s = share[k];", *loads.reset(frame)]
    for kind in range(len(frame.kinds)):
        runs += block(f"if (s[0] == {kind})", call(f"core_{kind}", ranges))
    return function(f"void {name}", arguments, body + block(f"for (int k = 0; k < {len(rows)}; k++)", runs))
