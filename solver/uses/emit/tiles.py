"""The functions of a layer's C that bring tiles of IN and W, and that open, compute, close and store tiles of OUT."""

from __future__ import annotations

from collections.abc import Iterable

from instances.network.workload import RELEVANT
from solver.uses.emit.frame import Frame, Kept
from solver.uses.emit.text import block, function, indented, larger
from solver.uses.emit.values import rows_of

#: The bit of `held` by operand, on machines where it matters whether a tile is there.
BITS = {"IN": 1, "W": 2, "OUT": 4}


def over_box(order: str, body: Iterable[str], limits: dict[str, str] | None = None) -> list[str]:
    """Return loops over the elements of `box`, by axes in storage order; along some axes up to a limit at most."""
    ends = {d: f"certile_min(box->hi[{order.index(d)}], {limit})" for d, limit in (limits or {}).items()}
    for k, d in reversed(list(enumerate(order))):
        body = block(f"for (int {d} = box->lo[{k}]; {d} < {ends.get(d, f'box->hi[{k}]')}; {d}++)", body)
    return list(body)


def _settled(frame: Frame, operand: str) -> list[str]:
    """What comes before an operand with one buffer is moved: the late step."""
    return ["compute_late();"] if frame.late and not frame.doubled(operand) else []


def loader(lacks: str) -> str:
    """Return the name of the function that brings the inputs with one element along some dimensions."""
    return f"load_in_{lacks}" if lacks else "load_in"


def _before(operand: str, lacks: str) -> str:
    """The name of the pieces of the tile that is there."""
    return f"{operand.lower()}_{lacks}_before" if lacks else f"{operand.lower()}_before"


def _bit(frame: Frame, operand: str, lacks: str) -> int:
    """The bit of `held`: inputs that are broadcast have bits of their own."""
    return 8 << frame.patterns.index(lacks) if lacks else BITS[operand]


def _if_new(frame: Frame, operand: str, lacks: str = "") -> list[str]:
    """On machines whose loops run to and fro: leave if the tile that is asked for is on chip."""
    pieces, before = frame.pieces(operand, lacks), _before(operand, lacks)
    same = f"memcmp(wanted, {before}, sizeof wanted) == 0" if pieces else "1"
    lines = [f"const int wanted[] = {{{', '.join(pieces)}}};"] if pieces else []
    lines += [f"const int there = held & {_bit(frame, operand, lacks)};", *block(f"if (there && {same})", ["return;"])]
    return lines


def _remember(frame: Frame, operand: str, lacks: str = "") -> list[str]:
    """Keep the pieces of a new tile for `_if_new`."""
    copied = [f"memcpy({_before(operand, lacks)}, wanted, sizeof wanted);"] if frame.pieces(operand, lacks) else []
    return [*copied, f"held |= {_bit(frame, operand, lacks)};"]


def _turned(frame: Frame, operand: str, tile: str, k: int = 0) -> list[str]:
    """Let a tile lie in the other one of two buffers, if there are two in turn."""
    if not frame.halves(operand):
        return []
    number = {"IN": k, "W": frame.layer.inputs, "OUT": frame.layer.inputs + 1}[operand]
    base = f"{frame.base(operand, k)} + half[{number}] * {frame.name(operand, k)}_BYTES"
    return [f"{tile}.base = {base};", f"half[{number}] ^= 1;"]


# ---- IN --------------------------------------------------------------------------------------------------------------


def load_in(frame: Frame, lacks: str = "") -> list[str]:
    """Return the function that brings the tiles of the inputs with one element along some dimensions."""
    if frame.lines:
        return _load_lines(frame)
    body: list[str] = []
    if frame.snake:
        body = _if_new(frame, "IN", lacks)
        body += _find_slide(frame) if frame.rings else []
        body += _remember(frame, "IN", lacks)
    body += [*_settled(frame, "IN"), *frame.find_window(lacks)]
    for k in sorted(frame.loaded):
        body += block("", _one_input(frame, k)) if frame.layer.patterns[k] == lacks else []
    body += ["held |= 1;"] if frame.counts_held and not frame.snake else []
    slides = frame.rings and not frame.snake
    said = "; `slide`: only what lies beyond the one that is there, along this axis" if slides else ""
    said = f" with one element along {', '.join(lacks)}" if lacks else said
    given = [*(["int slide"] if slides else []), *frame.parameters("IN", lacks)]
    return function(f"static void {loader(lacks)}", given, body, f"Bring the tile of IN{said}.")


def _find_slide(frame: Frame) -> list[str]:
    """To and fro: the window slides if the tile that is there differs in one range of r, c, i or j alone."""
    dims = [d for d in frame.moving if d in RELEVANT["IN"]]
    axes = ", ".join(str({"r": 3, "i": 3, "c": 4, "j": 4}.get(d, 0)) for d in dims)
    if not dims:
        return ["const int slide = 0;"]
    return [
        f"static const int axis[] = {{{axes}}};", "int moved = 0, slide = 0;",
        *block(f"for (int d = 0; d < {len(dims)}; d++)", block(
            "if (wanted[2 * d] != in_before[2 * d] || wanted[2 * d + 1] != in_before[2 * d + 1])",
            ["moved++;", "slide = axis[d];"],
        )),
        "slide = there && moved == 1 ? slide : 0;",
    ]  # fmt: skip


def _one_input(frame: Frame, k: int) -> list[str]:
    tile, rings = f"now.in[{k}]", {frame.axis(number): (number, factor) for number, factor in frame.rings.items()}
    body = [f"const certile_box box = {frame.in_box(k)};"]
    if rings:
        body += ["certile_box part = box;", "static certile_box there;"]
    for a, (number, _) in rings.items():
        beyond = f"certile_beyond(&part.lo[{a}], &part.hi[{a}], there.lo[{a}], there.hi[{a}]);"
        body += block(f"if (slide == {number})", [beyond])
    for a in [a for a, (_, factor) in rings.items() if factor == 2]:  # one at most
        behind = f"box.lo[{a}] - (int)certile_place(&{tile}, {a}, there.hi[{a}])"
        said = "What shares nothing with the tile that is there begins behind it: the late step still reads that."
        body.append(f"/* {said} */")
        body += block(f"if (!slide || box.lo[{a}] >= there.hi[{a}])", [
            f"{tile}.first[{a}] = held & 1 && !certile_empty(&there) ? {behind} : box.lo[{a}];"])  # fmt: skip
    body += _turned(frame, "IN", tile, k)
    for a in range(5):
        factor = rings[a][1] if a in rings else 0
        body += [f"{tile}.first[{a}] = {'0' if factor else f'box.lo[{a}]'};"] if factor != 2 else []
    body += [f"certile_load(CERTILE_IN, &{tile}, &in_dram[{k}], &{'part' if rings else 'box'});"]
    return body + (["there = box;"] if rings else [])


def _load_lines(frame: Frame) -> list[str]:
    first, end = frame.edges("r" if frame.down else "c", ("next", "next_end"))
    body = [*_settled(frame, "IN"), *frame.find_window(), "int after[2] = {0, 0};"]
    body += block("if (next < next_end)", [f"after[0] = {first};", f"after[1] = {larger('after[0]', end)};"])
    for k in range(frame.layer.inputs):
        ends = frame.not_resident(k, "after[0]", "after[1]") if frame.down else ("after[0]", "after[1]")
        body += block("", [
            f"const certile_box box = {frame.in_box(k, 'bgnrc')};", f"const int rows[2] = {{{ends[0]}, {ends[1]}}};",
            *block("if (fresh)", [f"certile_lines_begin(&now.in[{k}]);"]),
            f"certile_lines_load(&now.in[{k}], &in_dram[{k}], &box, turns, rows);",
        ])  # fmt: skip
    given = ["int fresh", "int turns", "int next", "int next_end", *frame.parameters("IN")]
    return [
        "/* Move the window of IN, which lies in lines, and bring what is new: `fresh` where a sweep begins,",
        " * `turns` where a pass does; `next` is the piece of the next pass, empty if there is none. */",
        *function("static void load_in", given, body),
    ]  # fmt: skip


# ---- W ---------------------------------------------------------------------------------------------------------------


def load_w(frame: Frame) -> list[str]:
    """Return the function that brings the tile of W, with its biases."""
    if "W" not in frame.layer.operands:
        return []
    body = [*_if_new(frame, "W"), *_remember(frame, "W")] if frame.snake else []
    body += [*_settled(frame, "W"), f"const certile_box box = {frame.box('W')};"]
    body += [*_turned(frame, "W", "now.w"), "memcpy(now.w.first, box.lo, sizeof box.lo);"]
    if frame.has_bias_tile:
        lo, hi = (", ".join(side(d) for d in "gm") for side in (frame.lo, frame.hi))
        body += [
            f"now.bias.base = now.w.base + {frame.bias_at};",
            f"const certile_box biases = {{{{0, 0, 0, {lo}}}, {{1, 1, 1, {hi}}}}};",
            "memcpy(now.bias.first, biases.lo, sizeof biases.lo);",
        ]
    body += _move_w(frame)
    return function("static void load_w", frame.parameters("W"), body, "Bring the tile of W.")


def _move_w(frame: Frame) -> list[str]:
    """The call that brings weights, the box of which is there, and biases: a segment of their own wherever they lie."""
    begin = "certile_dma_begin(CERTILE_W, 1);"
    biases = [begin, "certile_move(&now.bias, &bias_dram, &biases);"] if frame.has_bias_tile else []
    return [begin, "certile_move(&now.w, &w_dram, &box);", *biases, "certile_dma_start();"]


def load_weights(frame: Frame) -> list[str]:
    """Return the function that brings all weights, which stay on chip for later layers; none if they are no tile."""
    if not (frame.kept_w and frame.kept_w.loads):
        return []
    body = [f"const certile_box box = {frame.whole('W')};"]
    if frame.has_bias_tile:
        body.append(f"const certile_box biases = {{{{0}}, {{1, 1, 1, {frame.layer.g}, {frame.layer.m}}}}};")
    body += [*_move_w(frame), "certile_dma_wait();"]
    return function("static void load_weights", [], body, "Bring all weights: they stay for later layers.")


# ---- OUT -------------------------------------------------------------------------------------------------------------


def evict(frame: Frame) -> list[str]:
    """Return the function that stores a tile of OUT."""
    final = ["finish(tile, box);"] if frame.cut else []
    final += _keep(frame, frame.kept_out) if frame.kept_out else []
    final += ["certile_tile result = *tile;", f"result.element = {frame.machine.out_bytes};"]
    rest = "box"
    if frame.layer.resident_out:
        a = frame.order("OUT").index("r")
        final += ["certile_box rest = *box;", f"rest.lo[{a}] = certile_max(rest.lo[{a}], {frame.layer.resident_out});"]
        rest = "&rest"
    final += [f"certile_store(CERTILE_OUT, &result, &out_dram, {rest});"]
    body = ["(void)last;", *final]
    if frame.cut:
        partial = ["certile_store(CERTILE_PSUM, tile, &psum_dram, box);"]
        body = [*block("if (last)", final)[:-1], "} else {", *indented(partial), "}"]
    said = "Store a tile of OUT: a result if all its sums are complete, else partial sums."
    given = ["const certile_tile *tile", "const certile_box *box", "int last"]
    return function("static void evict", given, body, said)


def _keep(frame: Frame, kept: Kept) -> list[str]:
    """Copy the rows of a result that stay on chip to their place; of a tile in partial sums elements are small now."""
    size, order = frame.machine.out_bytes, frame.order("OUT")
    pitches = enumerate(zip(order, rows_of(frame.extents("OUT")), strict=True))
    terms = (f"(ptrdiff_t)({d} - tile->first[{k}]) * {pitch * size}" for k, (d, pitch) in pitches)
    place = kept.place({d: d for d in "bgmrc"}, size)
    body = [f"memcpy({place},", f"       {' + '.join(['tile->base', *terms])}, {size});"]
    return ["/* The rows that stay on chip. */", *over_box(order, body, {"r": str(kept.rows)})]


def compute_late(frame: Frame) -> list[str]:
    """Return the function of double buffering that computes the step whose loads are complete."""
    if not frame.late:
        return []
    body = [
        *block("if (waiting)", ["compute(&late);"]), "waiting = 0;", "certile_dma_wait();",
        *block("if (closing)", ["evict(&closing_tile, &closing_box, closing_last);"]), "closing = 0;",
    ]  # fmt: skip
    said = "Compute the step whose loads are complete; then store its tile of OUT if it was the last one."
    return function("static void compute_late", [], body, said)


def close_out(frame: Frame) -> list[str]:
    """Return the function that is done with a tile of OUT."""
    body = ["evict(&now.out, &out_box, last);"]
    if frame.late:
        body = ["closing = 1;", "closing_last = last;", "closing_box = out_box;", "closing_tile = now.out;"]
        body += _settled(frame, "OUT")
    said = "Be done with the tile of OUT; `last`: its sums are complete."
    return function("static void close_out", ["int last"], body, said)


def open_out(frame: Frame) -> list[str]:
    """Return the function that begins a tile of OUT."""
    body: list[str] = []
    if frame.snake:
        body = ["const int before_last = out_last;", "out_last = last;", *_if_new(frame, "OUT")]
        body += [*block("if (there)", ["close_out(before_last);"]), *_remember(frame, "OUT")]
    body += [*_turned(frame, "OUT", "now.out"), *_settled(frame, "OUT")]
    body += [f"const certile_box box = {frame.box('OUT')};", "out_box = box;"]
    body += ["memcpy(now.out.first, box.lo, sizeof box.lo);"]
    read = ["certile_load(CERTILE_PSUM, &now.out, &psum_dram, &box);"]
    if frame.late and frame.doubled("OUT"):  # a piece with one tile stores sums and reads them back in the next step
        same = "closing && memcmp(&closing_box, &box, sizeof box) == 0"
        read = [*block(f"if ({same})", ["compute_late();"]), *read]
    always = frame.machine.psum_first_read
    body += read if always else block("if (!first)", read) if frame.cut else []
    given = (["int first"] if frame.cut and not always else []) + (["int last"] if frame.snake else [])
    said = "; its partial sums are read back but the first time" if frame.cut and not always else ""
    return function("static void open_out", given + frame.parameters("OUT"), body, f"Begin a tile of OUT{said}.")


# ---- steps -----------------------------------------------------------------------------------------------------------


def run(frame: Frame) -> list[str]:
    """Return the function that takes a step."""
    ranges = [f"now.{d}{end} = {d}{end};" for end in ("", "_end") for d in frame.moving]
    body = [*([" ".join(ranges)] if ranges else []), "now.fresh = fresh;"]
    if frame.late:
        body = ["compute_late();", *body, "late = now;", "waiting = 1;"]
    else:
        body += ["certile_dma_wait();", "compute(&now);"]
    said = ": it is computed while the next one is loaded" if frame.late else ""
    return function("static void run", ["int fresh", *frame.parameters()], body, f"Take a step{said}.")


def state(frame: Frame) -> list[str]:
    """Return the variables of a layer: what lies on chip, and the step and the tile that wait."""
    tiles = [*(("IN", lacks) for lacks in frame.patterns), *((op, "") for op in frame.layer.operands if op != "IN")]
    said = [
        ("static step now;", True), ("static step late;", frame.late), ("static int waiting;", frame.late),
        ("static int closing, closing_last;", frame.late), ("static certile_box closing_box;", frame.late),
        ("static certile_tile closing_tile;", frame.late), ("static certile_box out_box;", True),
        ("static int held;", frame.counts_held), ("static int out_last;", frame.snake),
        *((f"static int {_before(op, lacks)}[{len(frame.pieces(op, lacks))}];",
           frame.snake and bool(frame.pieces(op, lacks))) for op, lacks in tiles),
        (f"static int half[{frame.layer.inputs + 2}];", any(map(frame.halves, frame.layer.operands))),
    ]  # fmt: skip
    return [
        "/* The tiles that lie on chip and the step that is next; of double buffers what waits. */",
        *(line for line, needed in said if needed),
    ]


def reset(frame: Frame) -> list[str]:
    """Return statements that begin a core: nothing is there."""
    lines = [("waiting = closing = 0;", frame.late), ("held = 0;", frame.counts_held),
             ("memset(half, 0, sizeof half);", any(map(frame.halves, frame.layer.operands)))]  # fmt: skip
    return [line for line, needed in lines if needed]
