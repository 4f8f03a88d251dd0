"""The functions of a layer's C that bring tiles of IN and W."""

from __future__ import annotations

from instances.network.workload import DIMS, RELEVANT
from solver.uses.emit.frame import Frame
from solver.uses.emit.places import Places
from solver.uses.emit.text import block, function, larger

#: The bit of `held` by operand, on machines where it matters whether a tile is there.
BITS = {"IN": 1, "W": 2, "OUT": 4}


def settled(frame: Frame, operand: str) -> list[str]:
    """Return what comes before an operand with one buffer is moved: the late step."""
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


def if_new(frame: Frame, operand: str, lacks: str = "") -> list[str]:
    """Return statements for machines whose loops run to and fro: leave if the tile that is asked for is on chip."""
    pieces, before = frame.pieces(operand, lacks), _before(operand, lacks)
    same = f"memcmp(wanted, {before}, sizeof wanted) == 0" if pieces else "1"
    lines = [f"const int wanted[] = {{{', '.join(pieces)}}};"] if pieces else []
    lines += [f"const int there = held & {_bit(frame, operand, lacks)};", *block(f"if (there && {same})", ["return;"])]
    return lines


def remember(frame: Frame, operand: str, lacks: str = "") -> list[str]:
    """Return statements that keep the pieces of a new tile for `if_new`."""
    copied = [f"memcpy({_before(operand, lacks)}, wanted, sizeof wanted);"] if frame.pieces(operand, lacks) else []
    return [*copied, f"held |= {_bit(frame, operand, lacks)};"]


def turned(frame: Frame, places: Places, operand: str, tile: str, k: int = 0) -> list[str]:
    """Return statements that let a tile lie in the other one of two buffers, if there are two in turn."""
    if not frame.halves(operand):
        return []
    number = {"IN": k, "W": frame.layer.inputs, "OUT": frame.layer.inputs + 1}[operand]
    base = f"{places.base(operand, k)} + half[{number}] * {places.bytes(operand, k)}"
    return [f"{tile}.base = {base};", f"half[{number}] ^= 1;"]


def load_in(frame: Frame, places: Places, lacks: str = "") -> list[str]:
    """Return the function that brings the tiles of the inputs with one element along some dimensions."""
    if frame.lines:
        return _load_lines(frame, places)
    body: list[str] = []
    if frame.snake:
        body = if_new(frame, "IN", lacks)
        body += _find_slide(frame) if frame.rings else []
        body += remember(frame, "IN", lacks)
    body += [*settled(frame, "IN"), *places.window(lacks)]
    for k in sorted(frame.loaded):
        body += block("", _one_input(frame, places, k)) if frame.layer.patterns[k] == lacks else []
    body += ["held |= 1;"] if frame.counts_held and not frame.snake else []
    slides = frame.rings and not frame.snake
    said = "; `slide`: only what lies beyond the one that is there, along this axis" if slides else ""
    said = f" with one element along {', '.join(lacks)}" if lacks else said
    given = ["int slide"] if slides else []
    return [f"/* Bring the tile of IN{said}. */",
            *function(f"static void {loader(lacks)}", given + frame.parameters("IN", lacks), body)]  # fmt: skip


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


def _one_input(frame: Frame, places: Places, k: int) -> list[str]:
    tile, rings = f"now.in[{k}]", frame.rings
    body = [f"const certile_box box = {places.in_box(k)};"]
    if rings:
        body += ["certile_box part = box;", "static certile_box there;"]
        for number in rings:
            a = places.axis("IN", number)
            body += block(f"if (slide == {number})", [
                f"certile_beyond(&part.lo[{a}], &part.hi[{a}], there.lo[{a}], there.hi[{a}]);"])  # fmt: skip
    if 2 in rings.values():
        a = places.axis("IN", next(iter(rings)))
        behind = f"box.lo[{a}] - (int)certile_place(&{tile}, {a}, there.hi[{a}])"
        body += [
            "/* What shares nothing with the tile that is there begins behind it: the late step still reads that. */"
        ]
        body += block(f"if (!slide || box.lo[{a}] >= there.hi[{a}])", [
            f"{tile}.first[{a}] = held & 1 && !certile_empty(&there) ? {behind} : box.lo[{a}];"])  # fmt: skip
    body += turned(frame, places, "IN", tile, k)
    for a in range(5):
        factor = next((factor for number, factor in rings.items() if places.axis("IN", number) == a), 0)
        if factor != 2:
            body.append(f"{tile}.first[{a}] = {'0' if factor else f'box.lo[{a}]'};")
    body += [f"certile_load(CERTILE_IN, &{tile}, &in_dram[{k}], &{'part' if rings else 'box'});"]
    return body + (["there = box;"] if rings else [])


def _load_lines(frame: Frame, places: Places) -> list[str]:
    d = "r" if frame.down else "c"
    first, end = places.edges(d, ("next", "next_end"))
    body = [*settled(frame, "IN"), *places.window(), "int after[2] = {0, 0};"]
    body += block("if (next < next_end)", [f"after[0] = {first};", f"after[1] = {larger('after[0]', end)};"])
    for k in range(frame.layer.inputs):
        ends = places.not_resident(k, "after[0]", "after[1]") if frame.down else ("after[0]", "after[1]")
        body += block("", [
            f"const certile_box box = {places.in_box(k, 'bgnrc')};", f"const int rows[2] = {{{ends[0]}, {ends[1]}}};",
            *block("if (fresh)", [f"certile_lines_begin(&now.in[{k}]);"]),
            f"certile_lines_load(&now.in[{k}], &in_dram[{k}], &box, turns, rows);",
        ])  # fmt: skip
    given = ["int fresh", "int turns", "int next", "int next_end", *frame.parameters("IN")]
    return [
        "/* Move the window of IN, which lies in lines, and bring what is new: `fresh` where a sweep begins,",
        " * `turns` where a pass does; `next` is the piece of the next pass, empty if there is none. */",
        *function("static void load_in", given, body),
    ]  # fmt: skip


def load_w(frame: Frame, places: Places) -> list[str]:
    """Return the function that brings the tile of W, with its biases."""
    if "W" not in frame.layer.operands:
        return []
    body = [*if_new(frame, "W"), *remember(frame, "W")] if frame.snake else []
    body += [*settled(frame, "W"), f"const certile_box box = {places.box('W')};"]
    body += [*turned(frame, places, "W", "now.w"), "memcpy(now.w.first, box.lo, sizeof box.lo);"]
    if places.has_bias_tile:
        lo, hi = (", ".join(side(d) for d in "gm") for side in (frame.lo, frame.hi))
        body += [
            f"now.bias.base = now.w.base + {places.bias_at};",
            f"const certile_box biases = {{{{0, 0, 0, {lo}}}, {{1, 1, 1, {hi}}}}};",
            "memcpy(now.bias.first, biases.lo, sizeof biases.lo);",
        ]
    body += _move_w(places)
    return ["/* Bring the tile of W. */", *function("static void load_w", frame.parameters("W"), body)]


def _move_w(places: Places) -> list[str]:
    """The call that brings weights, the box of which is there, and biases: a segment of their own wherever they lie."""
    begin = "certile_dma_begin(CERTILE_W, 1);"
    biases = [begin, "certile_move(&now.bias, &bias_dram, &biases);"] if places.has_bias_tile else []
    return [begin, "certile_move(&now.w, &w_dram, &box);", *biases, "certile_dma_start();"]


def load_weights(frame: Frame, places: Places) -> list[str]:
    """Return the function that brings all weights, which stay on chip for later layers; none if they are no tile."""
    if not (frame.kept_w and frame.kept_w.loads):
        return []
    body = [f"const certile_box box = {places.whole('W')};"]
    if places.has_bias_tile:
        body.append(f"const certile_box biases = {{{{0}}, {{1, 1, 1, {frame.layer.g}, {frame.layer.m}}}}};")
    body += [*_move_w(places), "certile_dma_wait();"]
    return ["/* Bring all weights: they stay for later layers. */", *function("static void load_weights", [], body)]


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


def all_dims(frame: Frame) -> list[str]:
    """Return assignments of the ranges of the step that is next."""
    return [f"now.{d} = {d};" for d in DIMS if d in frame.moving] + [
        f"now.{d}_end = {d}_end;" for d in DIMS if d in frame.moving
    ]
