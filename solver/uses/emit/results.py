"""The functions of a layer's C that open, compute, close and store tiles of OUT."""

from __future__ import annotations

from math import prod

from solver.uses.emit.frame import Frame, Kept
from solver.uses.emit.loads import all_dims, if_new, remember, turned
from solver.uses.emit.places import Places
from solver.uses.emit.text import block, function, indented


def evict(frame: Frame, places: Places) -> list[str]:
    """Return the function that stores a tile of OUT."""
    final = ["finish(tile, box);"] if frame.cut else []
    final += _keep(frame, places, frame.kept_out) if frame.kept_out else []
    final += ["certile_tile result = *tile;", f"result.element = {frame.machine.out_bytes};"]
    rest = "box"
    if frame.layer.resident_out:
        a = places.axis("OUT", 3)
        final += ["certile_box rest = *box;", f"rest.lo[{a}] = certile_max(rest.lo[{a}], {frame.layer.resident_out});"]
        rest = "&rest"
    final += [f"certile_store(CERTILE_OUT, &result, &out_dram, {rest});"]
    body = ["(void)last;", *final]
    if frame.cut:
        partial = ["certile_store(CERTILE_PSUM, tile, &psum_dram, box);"]
        body = [*block("if (last)", final)[:-1], "} else {", *indented(partial), "}"]
    return [
        "/* Store a tile of OUT: a result if all its sums are complete, else partial sums. */",
        *function("static void evict", ["const certile_tile *tile", "const certile_box *box", "int last"], body),
    ]


def _keep(frame: Frame, places: Places, kept: Kept) -> list[str]:
    """Copy the rows of a result that stay on chip to their place; of a tile in partial sums elements are small now."""
    size, names = frame.machine.out_bytes, {d: d for d in "bgmrc"}
    order, extents = places.order("OUT"), places.extents("OUT")
    pitch = {d: size * prod(extents[k + 1 :]) for k, d in enumerate(order)}
    terms = (f"(ptrdiff_t)({d} - tile->first[{k}]) * {pitch[d]}" for k, d in enumerate(order))
    body = [f"memcpy({kept.place(names, size)},", f"       {' + '.join(['tile->base', *terms])}, {size});"]
    for d in reversed(order):
        k, end = order.index(d), f"box->hi[{order.index(d)}]"
        end = f"certile_min({end}, {kept.rows})" if d == "r" else end
        body = block(f"for (int {d} = box->lo[{k}]; {d} < {end}; {d}++)", body)
    return ["/* The rows that stay on chip. */", *body]


def compute_late(frame: Frame) -> list[str]:
    """Return the function of double buffering that computes the step whose loads are complete."""
    if not frame.late:
        return []
    body = [
        *block("if (waiting)", ["compute(&late);"]), "waiting = 0;", "certile_dma_wait();",
        *block("if (closing)", ["evict(&closing_tile, &closing_box, closing_last);"]), "closing = 0;",
    ]  # fmt: skip
    return [
        "/* Compute the step whose loads are complete; then store its tile of OUT if it was the last one. */",
        *function("static void compute_late", [], body),
    ]


def close_out(frame: Frame) -> list[str]:
    """Return the function that is done with a tile of OUT."""
    body = ["evict(&now.out, &out_box, last);"]
    if frame.late:
        body = ["closing = 1;", "closing_last = last;", "closing_box = out_box;", "closing_tile = now.out;"]
        body += [] if frame.doubled("OUT") else ["compute_late();"]
    return ["/* Be done with the tile of OUT; `last`: its sums are complete. */",
            *function("static void close_out", ["int last"], body)]  # fmt: skip


def open_out(frame: Frame, places: Places) -> list[str]:
    """Return the function that begins a tile of OUT."""
    body: list[str] = []
    if frame.snake:
        body = ["const int before_last = out_last;", "out_last = last;", *if_new(frame, "OUT")]
        body += [*block("if (there)", ["close_out(before_last);"]), *remember(frame, "OUT")]
    body += turned(frame, places, "OUT", "now.out")
    body += ["compute_late();"] if frame.late and not frame.doubled("OUT") else []
    body += [f"const certile_box box = {places.box('OUT')};", "out_box = box;"]
    body += ["memcpy(now.out.first, box.lo, sizeof box.lo);"]
    read = ["certile_load(CERTILE_PSUM, &now.out, &psum_dram, &box);"]
    if frame.late and frame.doubled("OUT"):  # a piece with one tile stores sums and reads them back in the next step
        same = "closing && memcmp(&closing_box, &box, sizeof box) == 0"
        read = [*block(f"if ({same})", ["compute_late();"]), *read]
    always = frame.machine.psum_first_read
    body += read if always else block("if (!first)", read) if frame.cut else []
    given = (["int first"] if frame.cut and not always else []) + (["int last"] if frame.snake else [])
    said = "; its partial sums are read back but the first time" if frame.cut and not always else ""
    return [f"/* Begin a tile of OUT{said}. */",
            *function("static void open_out", given + frame.parameters("OUT"), body)]  # fmt: skip


def run(frame: Frame) -> list[str]:
    """Return the function that takes a step."""
    body = [" ".join(all_dims(frame)), "now.fresh = fresh;"] if frame.moving else ["now.fresh = fresh;"]
    if frame.late:
        body = ["compute_late();", *body, "late = now;", "waiting = 1;"]
    else:
        body += ["certile_dma_wait();", "compute(&now);"]
    said = ": it is computed while the next one is loaded" if frame.late else ""
    return [f"/* Take a step{said}. */", *function("static void run", ["int fresh", *frame.parameters()], body)]
