"""The pseudo-code of a nest and the places of its buffers: what a person writes a machine's code from."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodels.nest.buffers import Buffer, buffers
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from solver import Plan, check, solve
from solver.calls.solve import show
from solver.cli.main import main
from solver.problems.tiling import nest_table
from solver.show.pseudo_code import pseudo_code
from solver.show.tables import Column, Sheet, names_table, percent, ratio, render
from solver.show.words import decision_columns, decision_text, label
from tests.effort import tries
from tests.formulations.test_exactness import any_nest, layers, machines
from tests.hwmodels.test_abilities import any_case
from tests.lies import problems
from tests.small import TOY

LAYER = Layer.conv("x", channels=4, filters=6, size=(8, 8), kernel=(3, 3), pad=(1, 1, 1, 1))
FIELDS: dict[str, object] = {
    "name": "m", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 4, "ocm_bytes": 4096,
    "sliding": True, "transfer": Transfer(byte_ticks=1),
}  # fmt: skip
MACHINE = Machine.model_validate(FIELDS)
CHOOSING = Machine.model_validate(
    {**FIELDS, "buffering": "choose", "reserved_bytes": 16,
     "compute": Compute(model="array", cycle_ticks=1, rows=2, cols=2)}
)  # fmt: skip


def without_notes(text: str) -> list[str]:
    """The statements, without what stands behind #."""
    return [line.split("  # ")[0] for line in text.splitlines()]


def test_a_sliding_nest_in_words() -> None:
    """Two pieces of m, three of r: rows 0-3, 2-6, 5-7 of IN, so that 2 of 5 rows stay at every step.

    6 fetches of IN: 8 rows of 8 columns of 4 channels each time m moves, 2 * 256 bytes. The bytes of OUT: 6*8*8.
    """
    nest = Nest((Loop("m", 4), Hold("W"), Loop("r", 3), Hold("IN"), Hold("OUT")))
    text = pseudo_code(LAYER, MACHINE, nest)
    box = "m m0 to min(m0 + 4, 6), r r0 to min(r0 + 3, 8), c 0 to 8"
    rows = "rows max(0, r0 - 1) to min(r0 + 4, 8)"
    assert without_notes(text) == [
        "for m0 in range(0, 6, 4):",
        "  load W[m m0 to min(m0 + 4, 6), n 0 to 4, i 0 to 3, j 0 to 3]",
        "  for r0 in range(0, 8, 3):",
        f"    slide IN[n 0 to 4, {rows}, columns 0 to 8]: load the rows behind those on chip, all of them at the "
        "first piece of r0",
        f"    OUT[{box}] = 0",
        "    OUT += W * IN",
        f"    store OUT[{box}]",
    ]
    assert "6 calls, 24 runs, 512 bytes in all, at most 160 a call" in text
    assert "2 pieces, last 2" in text
    assert [(b.name, b.address, b.bytes, b.circular) for b in buffers(LAYER, MACHINE, nest)] == [
        ("W", 0, 144, ""), ("IN", 144, 160, "rows"), ("OUT", 304, 96, ""),
    ]  # fmt: skip


def test_partial_sums_and_two_buffers_in_words() -> None:
    """n in two pieces outside OUT: the first visit clears, the second loads; the last stores results."""
    nest = Nest((Hold("IN", 1), Loop("n", 2), Hold("W", 2), Loop("c", 5), Hold("OUT", 2)))
    text = pseudo_code(LAYER, CHOOSING, nest)
    box = "m 0 to 6, r 0 to 8, c c0 to min(c0 + 5, 8)"
    assert without_notes(text) == [
        "load IN[n 0 to 4, rows 0 to 8, columns 0 to 8]",
        "for n0 in range(0, 4, 2):",
        "  load W[m 0 to 6, n n0 to n0 + 2, i 0 to 3, j 0 to 3]",
        "  for c0 in range(0, 8, 5):",
        f"    if n0 == 0: OUT[{box}] = 0",
        f"    else: load partial sums OUT[{box}]",
        "    OUT += W * IN",
        f"    if n0 + 2 == 4: store OUT[{box}]",
        f"    else: store partial sums OUT[{box}]",
    ]
    assert [line.rsplit("; ", 1)[-1] for line in text.splitlines() if "; " in line] == [
        "one step ahead", "one step ahead", "one step behind",
    ]  # fmt: skip
    assert [(b.name, b.address, b.bytes, b.copies) for b in buffers(LAYER, CHOOSING, nest)] == [
        ("reserved", 0, 16, 1), ("IN", 16, 256, 1), ("W", 272, 108, 2), ("OUT", 488, 960, 2),
    ]  # fmt: skip


def test_every_input_of_an_elementwise_layer_has_its_buffer() -> None:
    """The text has the names of the buffers, and that each input is a call of its own: 2 x 3 tiles of 4 bytes."""
    layer = Layer(name="x", kind="eltwise", g=3, m=1, n=1, r=2, c=2, h=2, l=2, inputs=2, weights="none")
    nest = Nest((Loop("g", 1), Hold("IN"), Hold("OUT")))
    assert [b.name for b in buffers(layer, MACHINE, nest)] == ["IN1", "IN2", "OUT"]
    text = pseudo_code(layer, MACHINE, nest)
    assert without_notes(text)[1:3] == ["  load IN1, IN2[g g0 to g0 + 1, rows 0 to 2, columns 0 to 2]",
                                        "  OUT = fn(IN1, IN2)"]  # fmt: skip
    assert "6 calls, 6 runs, 24 bytes in all, at most 4 a call; every input by itself" in text
    # A loop over the one channel of a group comes back to no tile, so no visit has a condition.
    looped = pseudo_code(layer, MACHINE, Nest((Loop("g", 1), Loop("n", 1), Hold("IN"), Hold("OUT"))))
    assert "if " not in looped


def test_a_pool_does_not_say_that_it_adds() -> None:
    """A plan does not know whether a pool takes the largest value or adds: 0 and += would be wrong for a max pool."""
    pool = Layer(name="p", kind="pool", g=3, m=1, n=1, r=4, c=4, kh=2, kw=2, stride_h=2, stride_w=2, h=8, l=8,
                 weights="none")  # fmt: skip
    lines = without_notes(pseudo_code(pool, MACHINE, Nest((Loop("r", 1), Hold("IN"), Hold("OUT")))))
    assert lines[2:4] == ["  OUT[g 0 to 3, r r0 to r0 + 1, c 0 to 4] = neutral", "  OUT = fn(OUT, IN)"]


SNAKE = MACHINE.model_copy(update={"snake": True})


def test_snake_order_is_named_and_first_visits_are_those_of_the_pass() -> None:
    """n runs backwards for the second piece of m: its first visit there has n0 = 2, and one tile stays at the turn.

    That tile (of m0 = 0, r0 = 0: the loops are m, n, r, and r turns with n) is neither stored nor loaded.
    """
    nest = Nest((Loop("m", 3), Loop("n", 2), Hold("W"), Loop("r", 3), Hold("IN"), Hold("OUT")))
    box = "m m0 to m0 + 3, r r0 to min(r0 + 3, 8), c 0 to 8"
    rows = "rows max(0, r0 - 1) to min(r0 + 4, 8)"
    assert without_notes(pseudo_code(LAYER, SNAKE, nest)) == [
        "# Loops run to and fro (snake): a loop runs backwards where the piece numbers of the loops outside it",
        "# (the lowest piece of a pass is 0) add up to an odd number. A tile that stays is not loaded again.",
        "for m0 in range(0, 6, 3):",
        "  for n0 in range(0, 4, 2):",
        "    load W[m m0 to m0 + 3, n n0 to n0 + 2, i 0 to 3, j 0 to 3]",
        "    for r0 in range(0, 8, 3):",
        f"      slide IN[n n0 to n0 + 2, {rows}, columns 0 to 8]: where only r moved, load what the tile before did "
        "not hold, on either side; else all",
        f"      if n0 at the first piece of its pass: OUT[{box}] = 0",
        f"      else: load partial sums OUT[{box}] unless they are there",
        "      OUT += W * IN",
        f"      if n0 at the last piece of its pass: store OUT[{box}]",
        f"      else: store partial sums OUT[{box}] unless the next tile is the same",
    ]


def test_conditions_of_several_reduction_loops_to_and_fro() -> None:
    nest = Nest((Loop("n", 2), Loop("i", 1), Hold("W"), Hold("IN"), Loop("r", 3), Hold("OUT")))
    text = pseudo_code(LAYER, SNAKE, nest)
    assert "if n0 and i0 at the first pieces of their passes: OUT[" in text
    assert "if n0 and i0 at the last pieces of their passes: store OUT[" in text


def test_buffers_are_circular_along_all_that_slides_to_and_fro() -> None:
    """At a turn of c the window slides along r: forwards it only does along columns, the innermost loop."""
    nest = Nest((Hold("W"), Loop("r", 3), Loop("c", 3), Hold("IN"), Hold("OUT")))
    ring = {on.snake: buffers(LAYER, on, nest)[1] for on in (MACHINE, SNAKE)}
    assert [ring[snake].circular for snake in (False, True)] == ["columns", "rows columns"]
    said = "; circular: rows at their number modulo 5, columns at their number modulo 5"
    assert str(ring[True]).endswith(f"n 4 x rows 5 x columns 5, 1 byte each{said}")


def test_what_lines_load_and_how_their_buffer_is_made() -> None:
    """r inside c: two columns are shared over all 8 rows, and a window of 5 x 4 has 2 more columns: 4 * (16 + 10).

    A slide loads new columns times new rows. On a machine in snake order such a nest runs forwards, and says so.
    """
    machine = MACHINE.model_copy(update={"line": True, "snake": True})
    nest = Nest((Hold("W"), Hold("OUT"), Loop("c", 2), Loop("r", 3), Hold("IN", line=True)))
    buffer = buffers(LAYER, machine, nest)[2]
    assert (buffer.line_extents, buffer.own_extents) == ({"n": 4, "r": 8, "c": 2}, {"n": 4, "r": 5, "c": 2})
    assert (buffer.bytes, buffer.extents) == (4 * (16 + 10), {"n": 4, "r": 5, "c": 4})
    assert str(buffer).endswith(
        "n 4 x rows 5 x columns 4, 1 byte each; in lines of n 4 x rows 8 x columns 2, then its own n 4 x rows 5 x "
        "columns 2"
    )
    lines = without_notes(pseudo_code(LAYER, machine, nest))
    assert lines[0] == "# All loops run forwards (not in snake order), as IN lies in lines."
    assert lines[5].lstrip().startswith("slide IN in lines[n 0 to 4, rows")
    assert lines[5].endswith(
        ": load the columns behind those of the pass before (at the first piece of c0 all) x the rows behind those of "
        "the window before (at the first piece of r0 all)"
    )


def test_biases_are_part_of_a_call_and_of_the_buffer() -> None:
    """216 weights and 6 biases of 4 bytes in one call; the buffer says where the 24 bytes are."""
    layer, machine = LAYER.model_copy(update={"bias": True}), MACHINE.model_copy(update={"bias_bytes": 4})
    nest = Nest((Hold("W"), Hold("IN"), Hold("OUT")))
    text = pseudo_code(layer, machine, nest)
    assert "with biases  # 1 call, 2 runs, 240 bytes in all, at most 240 a call\n" in text
    buffer = buffers(layer, machine, nest)[0]
    assert (buffer.bytes, buffer.bias_bytes) == (240, 24)
    assert str(buffer).endswith("m 6 x n 4 x i 3 x j 3, 1 byte each; then biases, 24 bytes")
    assert "bias_bytes" not in buffers(LAYER, machine, nest)[0].model_dump()  # buffers without biases stay as they were


def test_partial_sums_that_are_only_read_do_not_go_both_ways() -> None:
    """psum_first_read: 384 sums of 4 bytes come once, and no one is written."""
    machine = MACHINE.model_copy(update={"psum_first_read": True})
    text = pseudo_code(LAYER, machine, Nest((Hold("W"), Hold("IN"), Hold("OUT"))))
    assert "load partial sums OUT[m 0 to 6, r 0 to 8, c 0 to 8]  # 1 call, 1 run, 1,536 bytes in all\n" in text


def test_rows_of_whole_maps_are_those_that_windows_need() -> None:
    """Stride 2, 1x1: rows 0, 2, 4 and 6 of 8; row 7 is never fetched, so that 7 rows are loaded and not 8."""
    layer = Layer.conv("x", channels=1, filters=1, size=(8, 8), stride=(2, 2))
    assert "load IN[rows 0 to 7, columns 0 to 7]" in pseudo_code(
        layer, MACHINE, Nest((Hold("W"), Hold("IN"), Hold("OUT")))
    )


def test_cores_are_parallel_loops() -> None:
    machine = Machine.model_validate(
        {**FIELDS, "ocm_bytes": None, "in_buffer_bytes": 512, "w_buffer_bytes": 512, "out_buffer_bytes": 512, "tles": 2,
         "tlts": 2, "sliding": False, "problem": "slicing"}
    )  # fmt: skip
    nest = Nest((Spatial("r", 4, "tle"), Spatial("m", 3, "tlt"), Hold("W"), Hold("IN"), Hold("OUT")))
    lines = without_notes(pseudo_code(LAYER, machine, nest))
    assert lines[:2] == ["parallel for r0 in range(0, 8, 4):", "  parallel for m0 in range(0, 6, 3):"]
    assert lines[2].startswith("    load W[m m0 to")


@pytest.mark.parametrize("dim", ["r", "c"])
def test_the_buffer_of_all_cores_is_that_of_an_inner_one(dim: str) -> None:
    """8 rows or columns by 2: an inner core needs 4 of them, the first one, at the padding, 3."""
    cores = {"problem": "slicing", "tles": 4, "im2col_rows": 2, "im2col_channels": "tile"}
    machine = Machine.model_validate({**FIELDS, "sliding": False, "reserved_bytes": 7, **cores})
    placed = buffers(LAYER, machine, Nest((Spatial(dim, 2, "tle"), Loop("n", 3), Hold("IN"), Hold("W"), Hold("OUT"))))
    assert placed[1].extents == {"n": 3, "r": 8, "c": 8} | {dim: 4}
    # 6 filters of 3 channels and 3x3 taps; 6 x 16 sums of 4 bytes; two rows of 3x3 taps of the 3 channels of a tile
    sizes = {"reserved": 7, "IN": 3 * 8 * 4, "W": 6 * 3 * 9, "OUT": 6 * 8 * 2 * 4, "im2col": 2 * 9 * 3}
    assert {one.name: one.bytes for one in placed} == sizes
    assert str(placed[-1]).split() == [f"{sum(sizes.values()) - 54:,}", "54", "1", "im2col"]


def test_every_memory_has_its_reserved_bytes() -> None:
    """2 groups of 3 filters of 2 channels with biases of 2 bytes, in memories of their own."""
    layer = Layer.conv("x", channels=4, filters=6, size=(8, 8), kernel=(3, 3), groups=2, bias=True)
    own = {"ocm_bytes": None, "in_buffer_bytes": 999, "w_buffer_bytes": 999, "out_buffer_bytes": 999}
    machine = Machine.model_validate({**FIELDS, **own, "sliding": False, "reserved_bytes": 7, "bias_bytes": 2})
    placed = buffers(layer, machine, Nest((Hold("IN"), Hold("W"), Hold("OUT"))))
    tiles = [("IN", "in", 7, 256), ("W", "w", 7, 6 * 2 * 9 + 6 * 2), ("OUT", "out", 7, 216)]
    assert [(one.name, one.memory, one.address, one.bytes) for one in placed] == [
        *(("reserved", memory, 0, 7) for memory in ("in", "w", "out")), *tiles
    ]  # fmt: skip


def test_a_load_that_serves_several_cores_says_so() -> None:
    """Inside two parallel loops a reader would count 4 loads of IN; one serves the cores of a cluster."""
    machine = Machine.model_validate(
        {**FIELDS, "ocm_bytes": None, "in_buffer_bytes": 512, "w_buffer_bytes": 512, "out_buffer_bytes": 512, "tles": 2,
         "tlts": 2, "sliding": False, "problem": "slicing", "broadcast": {"input": "tle"}}
    )  # fmt: skip
    nest = Nest((Spatial("r", 4, "tle"), Spatial("m", 3, "tlt"), Hold("W"), Hold("IN"), Hold("OUT")))
    loads = [line for line in pseudo_code(LAYER, machine, nest).splitlines() if line.lstrip().startswith("load ")]
    assert "# 4 calls, " in loads[0]
    assert "one load for" not in loads[0]
    assert "# 2 calls, " in loads[1]
    assert loads[1].endswith("a call; one load for all cores of a cluster that need the same tile")


@pytest.mark.slow(1)
@settings(max_examples=tries(37, 150), deadline=None, suppress_health_check=list(HealthCheck))
@given(layers(), machines(cores=False) | machines(cores=True), st.data())
def test_buffers_are_the_occupancy_and_do_not_overlap(layer: Layer, machine: Machine, data: st.DataObject) -> None:
    """The addresses add up to what the replay sees in every memory; every transfer of the price stands in the text."""
    nest = any_nest(data.draw, layer, machine)
    outcome = price(layer, machine, nest)
    placed = buffers(layer, machine, nest)
    for memory, taken in replay(layer, machine, nest).outcome.occupancy_bytes.items():
        end = end_of([b for b in placed if b.memory == memory])
        assert end == taken if machine.edge_tiles == "true" else end <= taken
    text = pseudo_code(layer, machine, nest)
    moved = [int(b.replace(",", "")) for b in re.findall(r"runs?, ([\d,]+) bytes? in all", text)]
    if "; all" not in text:
        assert sum(moved) == outcome.bytes
    assert text.count("for ") == len(nest.items) - len(layer.operands)


@pytest.mark.few(2)
@pytest.mark.parametrize(("line", "snake"), [(True, False), (False, True), (True, True)])
@settings(max_examples=tries(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(dice=st.randoms(use_true_random=False))
def test_buffers_in_lines_are_the_occupancy(line: bool, snake: bool, dice: Random) -> None:
    layer, machine, nest = any_case(dice, line, snake)
    for memory, taken in replay(layer, machine, nest).outcome.occupancy_bytes.items():
        assert end_of([b for b in buffers(layer, machine, nest) if b.memory == memory]) == taken


def end_of(placed: list[Buffer]) -> int:
    """Where the buffers of a memory end, which lie one after the other."""
    end = 0
    for buffer in placed:
        assert buffer.address == end
        end = buffer.end
    return end


FIVE = Layer.conv("five", channels=1, filters=1, size=(5, 5), kernel=(3, 3), pad=(1, 1, 1, 1))


def test_free_places_in_words() -> None:
    """5 rows cut at 2 and 3, where the windows of padded pieces are 3 rows each; columns alike, by 1 inside."""
    bands, inner = (Loop("r", 2, (2, 3)), Loop("c", 2, (2, 3))), (Loop("r", 1), Loop("c", 1, (1, 4)))
    nest = Nest((Hold("W"), *bands, Hold("IN"), *inner, Hold("OUT")))
    box = "rows max(0, r0 - 1) to min(r0_end + 1, 5), columns max(0, c0 - 1) to min(c0_end + 1, 5)"
    text = pseudo_code(FIVE, MACHINE, nest)
    assert without_notes(text) == [
        "load W[i 0 to 3, j 0 to 3]",
        "for r0, r0_end in pieces(0, 5, at=[2, 3]):",
        "  for c0, c0_end in pieces(0, 5, at=[2, 3]):",
        f"    slide IN[{box}]: load the columns behind those on chip, all of them at the first piece of c0",
        "    for r1 in range(r0, r0_end, 1):",
        "      for c1, c1_end in pieces(c0, c0_end, at=[1, 4]):",
        "        OUT[r r1 to r1 + 1, c c1 to c1_end] = 0",
        "        OUT += W * IN",
        "        store OUT[r r1 to r1 + 1, c c1 to c1_end]",
    ]
    assert text.count("# 3 pieces of at most 2\n") == 2
    assert "range(r0, r0_end, 1):  # 5 pieces\n" in text


def test_places_of_a_core_are_counted_from_its_begin() -> None:
    machine = Machine.model_validate(
        {**FIELDS, "ocm_bytes": None, "in_buffer_bytes": 512, "w_buffer_bytes": 512, "out_buffer_bytes": 512, "tles": 2,
         "tlts": 2, "sliding": False, "problem": "slicing"}
    )  # fmt: skip
    cuts = Loop("r", 3, (3,))
    nest = Nest((Spatial("r", 4, "tle"), Spatial("m", 3, "tlt"), Hold("W"), cuts, Hold("IN"), Hold("OUT")))
    text = pseudo_code(LAYER, machine, nest)
    assert "    for r1, r1_end in pieces(r0, min(r0 + 4, 8), at=[r0 + 3]):  # 2 pieces, last 1" in text.splitlines()


def test_a_plan_with_free_places_names_them_all() -> None:
    """9 bytes of weights, 3x3 of IN and a pixel in 19: what equal steps cannot do (docs/nest.md)."""
    machine = MACHINE.model_copy(update={"psum_bytes": 1, "ocm_bytes": 19})
    plan = solve(FIVE, machine, objective="bytes")
    assert (plan.status, plan.objective.value) == ("OPTIMAL", 79)
    row = plan.layers[0]
    text = show(plan, "five")
    cut = [i for i in row.schedule.items if isinstance(i, Loop) and i.cuts]
    assert {i.dim for i in cut} == {"r", "c"}
    for item in cut:
        places = row.decision[f"cuts_{item.dim.upper()}"]
        assert str(places).split(",")[0] == " ".join(map(str, item.cuts))
        assert f"at=[{', '.join(map(str, item.cuts))}]" in text
    short = decision_text(row.decision)
    assert "R<=1 C<=1" in short
    assert "2 3" not in short


# ---- plans -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("show") / "plan.json"
    solve(LAYER, MACHINE, objective="bytes").save(path)
    return path


def test_a_plan_says_where_its_buffers_lie(file: Path) -> None:
    plan = Plan.load(file)
    row = plan.layers[0]
    assert {b.name: b.memory for b in row.figures.buffers} == {"IN": "ocm", "W": "ocm", "OUT": "ocm"}
    assert max(b.end for b in row.figures.buffers) == row.occupancy_bytes["ocm"] <= 4096
    moved = replace(
        row.figures, buffers=tuple(b.model_copy(update={"address": b.address + 1}) for b in row.figures.buffers)
    )
    edited = plan.model_copy(update={"parts": (row.part.model_copy(update={"figures": moved}),)})
    assert check(edited).problems[0] == "layer x: figures.buffers[0].address: the plan says 1, it is 0"


def test_a_plan_without_buffers_does_not_hold(file: Path) -> None:
    plan = Plan.load(file)
    assert "layer x: figures.buffers: the plan says []" in problems(plan, ("parts.0.figures.buffers", []))[0]
    assert "layer x: figures: the plan says None" in problems(plan, ("parts.0.figures", None))[0]
    with pytest.raises(InputError, match=r"field parts\[0\]\.figures is missing"):
        problems(plan, ("parts.0", lambda row: {name: said for name, said in row.items() if name != "figures"}))


def test_show_prints_a_layer_of_a_plan(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(file), "--layer", "x"]) == 0
    text = capsys.readouterr().out
    head = text.splitlines()
    assert head[0] == "x: conv 8x8x4 -> 8x8x6, kernel 3x3, padding 1 above, 1 below, 1 left, 1 right, on m"
    assert head[1] == "bytes 856 bytes (OPTIMAL, bound 856)"  # 256 + 216 + 384, everything once
    assert head[2] == "856 bytes move; no plan moves fewer than 856"
    plan = Plan.load(file)
    taken = sum(b.copies * b.bytes for b in buffers(LAYER, MACHINE, plan.layers[0].schedule))
    assert head[4] == f"memory ocm, 4,096 bytes of a core, {4096 - taken:,} free:"
    assert text.count("store OUT[") == 1
    assert main(["show", str(file), "--all"]) == 0
    assert capsys.readouterr().out == text
    assert main(["show", str(file)]) == 0
    summary = capsys.readouterr().out
    assert summary.startswith("x on m (tiling, exhaustive): OPTIMAL\nbytes 856 bytes, bound 856, gap 0 %\n")
    assert "store OUT" not in summary


def test_a_layer_that_is_not_in_the_plan(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(file), "--layer", "y"]) == 2
    assert "y" in (error := capsys.readouterr().err)
    assert "x" in error
    assert len(error.splitlines()) == 1


def test_a_layer_without_a_plan_says_why() -> None:
    plan = solve(LAYER, MACHINE.model_copy(update={"ocm_bytes": 2}))
    lines = show(plan, "x").splitlines()
    assert lines[1].startswith("INFEASIBLE, there is no schedule: ")


def test_a_malformed_nest_is_refused() -> None:
    with pytest.raises(InputError, match="OUT"):
        pseudo_code(LAYER, MACHINE, Nest((Hold("IN"), Hold("W"))))


# ---- Tables: what people read must not round a gap to zero or hide a missing layer -----------------------------------


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(Layer.conv("tiny", channels=2, filters=2, size=(4, 4)), TOY)


def _changed(plan: Plan, **update: object) -> Plan:
    part = plan.parts[0].model_copy(update=update)
    shared = {k: v for k, v in update.items() if k in Plan.model_fields}
    return plan.model_copy(update={**shared, "parts": (part,)})


def test_the_figures_of_a_layer(plan: Plan) -> None:
    # 108 ticks of 1000 ps are 0.108 us; 6864 fJ are 0.000007 uJ
    row = render(nest_table(plan, {})).splitlines()[2].split()
    assert row[:6] == ["tiny", "0.1", "0", "68", "0.0", "1.000"]


@pytest.mark.parametrize(
    ("gap", "shown"), [(0.0, "0"), (None, "-"), (0.5, "50.00"), (0.000001, "<0.01"), (0.00012, "0.01")]
)
def test_a_gap_is_zero_only_if_it_is(plan: Plan, gap: float | None, shown: str) -> None:
    assert percent(gap) == shown
    assert render(nest_table(_changed(plan, gap=gap), {})).splitlines()[2].split()[2] == shown


@pytest.mark.parametrize(
    ("value", "reference", "shown"),
    [(3, 2, "1.500"), (None, 2, "-"), (3, None, "-"), (0, 0, "1.000"), (1, 0, "inf"), (2, 2, "1.000")],
)
def test_ratio(value: int | None, reference: int | None, shown: str) -> None:
    assert ratio(value, reference) == shown


def test_decisions_in_short() -> None:
    decision = {"partition": "KS", "loops": "W r c OUT n IN", "T_M": 16, "T_R": 4, "cuts_R": "2 4", "home_W": "flash"}
    assert decision_text(decision) == "KS; W | r c | OUT | n | IN; M=16 R<=4; W in flash"
    assert [column.head for column in decision_columns([decision, None])] == [
        "partition", "loop order", "tile", "off chip",
    ]  # fmt: skip
    assert decision_columns([None, {"T_M": 2, "buffers_IN": 2, "buffers_W": 1}])[1].cells == ["-", "two for IN"]


def test_status_line_names_what_is_missing(plan: Plan) -> None:
    empty = {**dict.fromkeys(("gap", "schedule", "replay", "figures")), "measures": {}, "terms": {}}
    lost = plan.parts[0].model_copy(update={**empty, "bounds": {"time": None}, "status": "NO_SOLUTION_FOUND"})
    missing = plan.model_copy(
        update={"status": "NO_SOLUTION_FOUND", "objective": None, "measures": None, "parts": (lost,) * 5,
                "network_data": plan.network_data * 5}
    )  # fmt: skip
    line = show(missing)
    assert "NO_SOLUTION_FOUND\n5 of 5 layers without a schedule: tiny, tiny, tiny and 2 more" in line
    assert "NO_SOLUTION_FOUND" in render(nest_table(missing, {}))


def test_status_line_without_a_bound(plan: Plan) -> None:
    assert "no bound" in show(plan.model_copy(update={"bound": None, "gap": None}))


@pytest.mark.parametrize(("proven", "said"), [("time", True), ("time,bytes", False), ("", False)])
def test_status_line_names_what_is_proven_in_part(plan: Plan, proven: str, said: bool) -> None:
    half = _changed(plan, stats={"proven": proven}).model_copy(update={"objectives": ("time", "bytes")})
    assert ("only some of time,bytes proven in 1 of 1 layers: tiny" in show(half)) is said


def test_status_line_names_what_is_not_proven(plan: Plan) -> None:
    proven = plan.parts[0].model_copy(update={"status": "OPTIMAL"})
    left = plan.parts[0].model_copy(update={"status": "FEASIBLE", "name": "left"})
    three = plan.model_copy(update={"parts": (proven, left, proven), "network_data": plan.network_data * 3})
    assert "not proven in 1 of 3 layers: left" in show(three)
    for parts in ((proven,) * 3, (left,) * 3):  # a heuristic proves none
        assert "not proven" not in show(three.model_copy(update={"parts": parts}))


def test_names_from_files_are_only_text(plan: Plan) -> None:
    """Neither rich's markup nor control characters of a layer's name take effect."""
    shown = render(nest_table(_changed(plan, name="[red]a\x1b[0m\n"), {}))
    assert "[red]a?[0m?" in shown
    assert "[x]" in render(names_table({"[x]": "y"}, ("name", "what")))


def test_the_objective_stands_first(plan: Plan) -> None:
    layer = plan.layers[0].workload
    assert nest_table(solve(layer, TOY, objective="bytes"), {}).columns[1].head == "bytes"
    assert nest_table(solve(layer, TOY, objective="energy"), {}).columns[1].head == "energy (uJ)"


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_nothing_is_cut_off_silently(plan: Plan, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words and numbers are folded, columns that are left out are named."""
    monkeypatch.setenv("COLUMNS", str(columns))
    text = show(plan)
    assert max(map(len, text.splitlines())) <= columns
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    words = " ".join(text.split())
    shown = [column.head for column in nest_table(plan, {}).columns if column.head.split()[0] in words]
    assert len(shown) == len(nest_table(plan, {}).columns)
    assert ("left out in" in words) == (columns < 80)


def test_a_narrow_table_keeps_every_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    name = Column("name", ["alpha beta gamma", "x"], words=True)
    lines = render(Sheet([name, Column("value (us)", ["1,234", "5"], "a time")])).splitlines()
    assert [line.split() for line in lines if "\N{BOX DRAWINGS LIGHT HORIZONTAL}" not in line] == [
        ["value"], ["name", "(us)"], ["alpha", "beta", "1,234"], ["gamma"], ["x", "5"], [], ["value:", "a", "time"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("321", "321 conv 3x3 64>128 56x56"), ("", "conv 3x3 64>128 56x56"), ("n12", "n12 conv 3x3 64>128 56x56"),
        ("conv1", "conv1"),
        ("node_conv2d_12", "node_conv2d_12 conv 3x3 64>128 56x56"), ("Conv_12", "Conv_12 conv 3x3 64>128 56x56"),
        ("/features/0/Conv", "/features/0/Conv"), ("layer1.0.conv2", "layer1.0.conv2"),
    ],
)  # fmt: skip
def test_names_that_say_nothing_have_kind_and_shape_beside(name: str, shown: str) -> None:
    layer = Layer.conv("x", channels=64, filters=128, size=(56, 56), kernel=(3, 3), pad=(1, 1, 1, 1))
    assert label(name, layer) == shown
    assert label(name, None) == name
