"""Figures as data: numbers known by hand, and that both renderers draw all of them."""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.load import load_machine
from instances.machine.sections import OffChip
from instances.network.operators import Input
from instances.network.workload import Layer
from instances.problems import PROBLEMS
from solver.calls.solve import solve
from solver.plan.figures import Axis, Bars, Box, Boxes, Drawing, Figure, Graph, Point, Points, Series
from solver.plan.plan import Plan
from solver.problems.layers_figures import times_of
from solver.problems.placement import rows_of
from solver.show.common import Stay, graph, layer_axis, layout, residency, stacked, tensors, tile_drawing
from solver.show.interactive import drawn
from solver.show.printed import image, plot
from solver.show.roofline import Rate, roofline, roofs, unpadded
from solver.show.style import short, slugs, spoken
from solver.uses.report.face import to_plotly
from solver.uses.report.front_page import Rows, least, scatter
from tests.golden_plans import chain, skip
from tests.reported import plan_of


def figure_of(plan: Plan, key: str) -> Figure:
    """The figure of a plan by its key."""
    (found,) = (figure for figure in plan.figures() if figure.key == key)
    return found


def lenet() -> Plan:
    return solve("lenet5", "scratchpad_64k", problem="tiling", layers=["c1", "c3"], objective="bytes")


# ---- roofs -----------------------------------------------------------------------------------------------------------


def test_roofs_by_hand() -> None:
    # 16 x 64 MACs a cycle of 8 ticks of 125 ps (1 GHz); a byte takes a tick: 8 GB/s.
    found = roofs(load_machine("scratchpad_64k"))
    assert (found.gmacs, found.gbytes) == (1024, 8)
    # 32 cores, 32 MACs in 40 ticks of 125 ps: 1024 / 5 ns. A byte takes 8 + 400/128 ticks on one of four buses.
    found = roofs(load_machine("nmp"))
    assert found.gmacs == pytest.approx(204.8)
    assert found.gbytes == pytest.approx(4 * 8 / (8 + 400 / 128))
    # 2 x 2 units of 32 PEs at 200 MHz.
    assert roofs(load_machine("vectormesh_128")).gmacs == pytest.approx(25.6)


def test_macs_without_padding() -> None:
    # 13 rows, 3 taps, padding 1: the first and the last row have one tap outside: 37 of 39, likewise columns.
    layer = Layer(name="a", m=4, n=2, r=13, c=13, kh=3, kw=3, pad_top=1, pad_left=1, h=13, l=13)
    assert unpadded(layer) == layer.macs * 37 * 37 // 39**2
    assert unpadded(layer.model_copy(update={"pad_top": 0, "pad_left": 0, "h": 15, "l": 15})) == layer.macs


def test_points_of_the_roofline() -> None:
    # 1000 MACs, 100 bytes, 80 ticks of 125 ps = 10 ns: 10 MACs a byte, 100 GMAC/s. Ridge at 1024 / 8 = 128.
    machine = load_machine("scratchpad_64k")
    drawn = roofline(machine, {"exhaustive": [Rate("a", 1000, 100, 80), Rate("nothing", 0, 5, 5)]})
    cloud, peak, memory = drawn.clouds
    assert [(p.name, p.x, p.y) for p in cloud.points] == [("a", 10, pytest.approx(100))]
    assert [(p.x, p.y) for p in peak.points] == [(128, 1024), (256, 1024)]
    assert [(p.x, p.y) for p in memory.points] == [(5, 40), (128, 1024)]
    # of two memories the faster one is the roof: 2 and 8 ticks a byte
    near, far = ({"name": name, "bytes": 64, "transfer": {"byte_ticks": ticks}} for name, ticks in (("a", 2), ("b", 8)))
    both = machine.model_copy(update={"off_chip": tuple(OffChip.model_validate(one) for one in (far, near))})
    assert roofs(both).gbytes == pytest.approx(1000 / (2 * machine.tick_ps))


@pytest.mark.parametrize("problem", ["tiling", "slicing", "joint", "banks", "mesh"])
def test_no_layer_is_above_the_roofs(problem: str) -> None:
    plan = plan_of(problem)
    drawn, limits = figure_of(plan, "roofline"), roofs(plan.machine_data)
    points = [point for cloud in drawn.clouds if cloud.shape != "line" for point in cloud.points]
    assert points
    for point in points:
        assert limits.gmacs is None or point.y <= limits.gmacs * (1 + 1e-9)
        if problem != "banks":  # there weights may come while the stage before computes
            assert limits.gbytes is None or point.y <= point.x * limits.gbytes * (1 + 1e-9)


# ---- times, memories -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["time", "bytes"])
def test_parts_of_time_sum_to_it(objective: str) -> None:
    plan = solve("lenet5", "scratchpad_64k", problem="tiling", layers=["c1", "c3"], objective=objective)
    for row, (name, terms) in zip(plan.layers, times_of(plan), strict=True):
        assert (name, sum(terms.values())) == (row.layer, pytest.approx(row.measures.time * 125 / 1e6))


def test_overlap_is_a_mark() -> None:
    plan = plan_of("slicing")
    bars = figure_of(plan, "time-by-layer")
    measures = plan.layers[0].measures
    assert measures is not None
    if bars.marks:
        assert bars.marks[0] == pytest.approx(measures.time * 125 / 1e6)
    else:
        assert sum(one.values[0] or 0 for one in bars.series) == pytest.approx(measures.time * 125 / 1e6)


def test_memory_of_a_layer_by_hand() -> None:
    # LeNet-5 c1: inputs of 32 x 32, 6 filters of 5 x 5, results of 28 x 28 x 6, all on chip at once.
    drawn = figure_of(lenet(), "memory-ocm")
    boxes = [(box.name, box.x, box.x_end, box.y_end - box.y) for box in drawn.boxes if box.x == 0]
    assert {(name, size) for name, *_, size in boxes} == {("IN", 1024), ("W", 150), ("OUT", 4704)}
    assert drawn.limit == 65536


def test_what_stays_is_one_box() -> None:
    stays = [Stay(0, 0, 4, "a", "map", ""), Stay(1, 0, 4, "a", "map", ""), Stay(3, 0, 4, "a", "map", "")]
    drawn = residency("k", "t", "c", ["x", "y", "z", "u"], stays, Axis("bank"))
    assert [(box.x, box.x_end) for box in drawn.boxes] == [(0, 2), (3, 4)]


def test_maps_on_chip_lie_in_the_banks_of_the_plan() -> None:
    plan = plan_of("joint")
    drawn = figure_of(plan, "memory-ocm")
    area = sum((box.x_end - box.x) * (box.y_end - box.y) for box in drawn.boxes)
    assert area == sum(len(run.banks) + sum(len(banks) for _, banks in run.residents.values()) for run in plan.schedule)


def test_placed_buffers_are_where_the_plan_says() -> None:
    plan = plan_of("placement")
    drawn = [figure for figure in plan.figures() if isinstance(figure, Boxes)]
    boxes = {box.name: (box.x, box.x_end, box.y, box.y_end) for figure in drawn for box in figure.boxes}
    placed = {b.name: (b.lower, b.upper, b.address, b.address + b.size) for b in rows_of(plan) if b.address is not None}
    assert boxes == placed
    assert boxes


def test_busy_times_of_processors() -> None:
    plan = plan_of("mapping")
    drawn = figure_of(plan, "processors")
    for lane, processor in enumerate(plan.part.figures.processors):
        took = sum(box.x_end - box.x for box in drawn.boxes if box.y < lane < box.y_end)
        assert took == pytest.approx(sum(processor.loads) * plan.machine_data.tick_ps / 1e6)


def test_threads_end_at_their_load() -> None:
    plan = plan_of("selection")
    drawn = figure_of(plan, "threads")
    for lane, thread in enumerate(plan.part.figures.threads):
        end = max(box.x_end for box in drawn.boxes if box.y < lane < box.y_end)
        assert end == pytest.approx(thread.load * plan.machine_data.tick_ps / 1e6)


def test_bank_boxes_do_not_meet() -> None:
    plan = plan_of("banks")
    drawn = figure_of(plan, "banks")
    lanes: dict[float, list[Box]] = {}
    for box in sorted(drawn.boxes, key=lambda one: one.x):
        lanes.setdefault(box.y, []).append(box)
    assert lanes
    assert all(a.x_end <= b.x for mine in lanes.values() for a, b in pairwise(mine))


# ---- tiles, networks, fronts -----------------------------------------------------------------------------------------


def test_a_tile_on_its_tensor() -> None:
    plan = lenet()
    row = plan.layers[0]
    assert row.figures.buffers is not None
    found = tensors(row.workload, row.figures.buffers)
    assert [(one.name, one.whole, one.tile) for one in found] == [
        ("IN", (32, 32, 1), (32, 32, 1)), ("W", (25, 1, 6), (25, 1, 6)), ("OUT", (28, 28, 6), (28, 28, 6))
    ]  # fmt: skip
    assert [one.part for one in found] == [1, 1, 1]
    drawn = tile_drawing("k", "t", found)
    assert len(drawn.polygons) == 3 * 6
    assert drawn.table().rows[2] == ("OUT", "columns x rows x channels", "28 x 28 x 6", "28 x 28 x 6", 100.0)


def test_a_part_of_a_tensor_is_drawn_to_scale() -> None:
    (found,) = tensors(
        Layer(name="a", m=8, n=1, r=4, c=4, h=4, l=4),
        [one for one in lenet().layers[0].figures.buffers if one.name == "OUT"],
    )
    part = found.__class__("OUT", found.words, (4, 4, 8), (2, 4, 8))
    drawn = tile_drawing("k", "t", [part])
    whole, mine = ([c[0] for c in polygon.corners] for polygon in (drawn.polygons[0], drawn.polygons[3]))
    assert max(mine) - min(mine) == pytest.approx((max(whole) - min(whole)) / 2)


def test_a_diamond_has_two_lanes() -> None:
    #   0 -> 1 -> 3, 0 -> 2 -> 3
    assert layout([(0, 1), (0, 2), (1, 3), (2, 3)], 4) == [(0, 0), (0, 1), (1, 1), (0, 2)]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=20))
def test_nodes_lie_below_what_they_read_and_nowhere_twice(pairs: list[tuple[int, int]]) -> None:
    edges = sorted({(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]})
    places = layout(edges, 9)
    assert len(set(places)) == 9
    assert all(places[a][1] < places[b][1] for a, b in edges)


def test_groups_over_the_network() -> None:
    drawn = graph("k", "t", "c", skip(4, 4), {"a..b": ["a", "b"], "c": ["c"]}, {"a..b": "strips"})
    assert [(node.name, node.group) for node in drawn.nodes] == [
        ("in", None), ("a", 0), ("b", 0), ("c", 1), ("sum", None)
    ]  # fmt: skip
    assert drawn.nodes[1].note == "strips"
    assert drawn.table().rows[4][2] == "a, c"
    assert isinstance(skip(4, 4).operators[0], Input)


def test_the_front_of_points_by_hand() -> None:
    points = [Point(1, 5), Point(1.5, 5), Point(2, 3), Point(2, 4), Point(3, 4), Point(4, 1)]
    assert [(p.x, p.y) for p in least(points)] == [(1, 5), (2, 3), (4, 1)]


def test_rows_of_anything_as_points() -> None:
    rows = Rows(("name", "bytes", "time (us)", "net"), (("a", 1, 2.5, "x"), ("b", 2, 1.5, "y"), ("c", None, 1, "x")),
                axes=("bytes", "time (us)"), group="net")  # fmt: skip
    drawn = scatter(rows, "bytes", "time (us)")
    assert {cloud.name: len(cloud.points) for cloud in drawn.clouds} == {"x": 1, "y": 1, "front": 2}


def test_bars_of_names_and_engines() -> None:
    bars = stacked("k", "t", "c", "us", {"one": {"a": {"x": 1, "y": 0}}, "two": {"a": {"x": 2}, "b": {"x": 9}}})
    assert (bars.names, bars.beside) == (("a", "a"), ("one", "two"))
    assert bars.series == (Series("x", (1, 2)),)  # y is nowhere more than 0
    assert bars.table().rows == (("a", "one", 1), ("a", "two", 2))


# ---- words -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=12), max_size=12))
def test_every_name_has_an_id_of_its_own(names: list[str]) -> None:
    found = slugs(names)
    assert len(set(found)) == len(names)
    assert all(one and set(one) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for one in found)


@given(st.text(max_size=60))
def test_short_names_are_short(name: str) -> None:
    assert len(short(name)) <= 26
    assert short(name) == name or "…" in short(name)


def test_numbers_for_people() -> None:
    assert [spoken(x) for x in (1234567, 0, 2.0, 0.12346, 1234.567)] == ["1,234,567", "0", "2", "0.1235", "1,234.57"]


def test_few_layers_are_named_and_many_numbered() -> None:
    assert layer_axis(["a", "b"]).ticks == ((0.5, "a"), (1.5, "b"))
    assert layer_axis([f"l{k}" for k in range(25)]).ticks == ((0.5, "1"), (9.5, "10"), (19.5, "20"))


# ---- both renderers --------------------------------------------------------------------------------------------------


@pytest.mark.slow(1)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_problem_has_figures_that_both_draw(problem: str) -> None:
    figures = plan_of(problem).figures()
    assert figures
    for figure in figures:
        made = to_plotly(figure)  # plotly refuses what it does not know
        assert len(made.data) > 0
        rows = figure.table()
        assert rows.rows
        assert all(len(row) == len(rows.columns) for row in rows.rows)
        assert figure.caption.endswith(".")
    first = figures[0]
    assert image(first, "svg").startswith(b"<?xml")


@pytest.mark.slow(3)
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_images_are_the_same_every_time(kind: str) -> None:
    for figure in _every_kind():
        assert image(figure, kind) == image(figure, kind)


def test_both_draw_every_number_where_it_is() -> None:
    """Bars of one name stand on each other, negative ones to the left of nothing; the rest lies where it lies."""
    bars, boxes, net, points, tile = _every_kind()
    canvas, axes = plt.subplots(1, 5)
    assert [plot(one, ax) is ax for one, ax in zip((bars, boxes, net, points, tile), axes, strict=True)] == [True] * 5
    assert [(one.get_x(), one.get_width(), one.get_y() + 0.4) for one in axes[0].patches] == [
        (0, 1, 0), (0, 2, 1), (0, -1, 0), (2, 3, 1),
    ]  # fmt: skip
    assert axes[0].lines[0].get_xydata().tolist() == [[1.5, 0]]
    one, two, marks = drawn(bars)["data"]
    assert [(x["x"], x["y"]) for x in (one, two, marks)] == [([1, 2], [0, 1]), ([-1, 3], [0, 1]), ([1.5, None], [0, 1])]
    assert one["hovertext"] == ["a $x$<br>s: 1", "&lt;b&gt;<br>s: 2"]
    assert [(x.get_x(), x.get_width(), x.get_y(), x.get_height()) for x in axes[1].patches] == [
        (0, 1, 0, 1),
        (1, 4, 2, 1),
    ]
    assert [x.get_xydata().tolist() for x in axes[1].lines] == [[[0.5, 0], [0.5, 1]], [[0, 2], [1, 2]]]
    said = [(x["base"], x["x"], x["y"], x["width"]) for x in drawn(boxes)["data"]]
    assert said == [([0], [1], [0.5], [1]), ([1], [4], [2.5], [1])]
    assert [(x["x0"], x["x1"], x["y0"], x["y1"]) for x in drawn(boxes)["layout"]["shapes"]] == [
        (0.5, 0.5, 0, 1),
        (0, 1, 2, 2),
    ]
    nodes = [(node.x, node.y) for node in net.nodes]
    assert [tuple(x.get_xydata()[0]) for x in axes[2].lines[len(net.edges) :]] == nodes == [(0, 0), (0, 1), (0, 2)]
    assert [x.get_xydata().tolist() for x in axes[2].lines[: len(net.edges)]] == [[[0, 0], [0, 1]], [[0, 1], [0, 2]]]
    edges, *shown = drawn(net)["data"]
    assert (edges["y"], [(x["x"], x["y"]) for x in shown]) == ([0, 1, None, 1, 2, None], [([0], [0]), ([0, 0], [1, 2])])
    frame = drawn(net)["layout"]["shapes"][0]
    assert [frame[key] for key in ("x0", "x1", "y0", "y1")] == [-0.35, 0.35, 0.6, 2.4]
    assert (axes[2].patches[0].get_y(), axes[2].patches[0].get_height()) == (0.6, pytest.approx(1.8))
    assert [x.get_xydata().tolist() for x in axes[3].lines] == [[[1, 2], [2, 1]]] * 2
    assert [(x["x"], x["y"]) for x in drawn(points)["data"]] == [([1, 2], [2, 1])] * 2
    corners = [[*map(list, one.corners), list(one.corners[0])] for one in tile.polygons]
    assert [list(map(list, zip(x["x"], x["y"], strict=True))) for x in drawn(tile)["data"]] == corners
    assert len(axes[4].lines) + len(axes[4].patches) == len(corners)
    assert [(x["x"], x["y"]) for x in drawn(tile)["layout"]["annotations"]] == [(x.x, x.y) for x in tile.labels]
    alone = plot(bars)
    assert alone.figure is not canvas
    plt.close("all")


def _every_kind() -> list[Figure]:
    bars = Bars(
        "b",
        "Bars",
        "c.",
        Axis("us"),
        ("a $x$", "<b>"),
        (Series("s", (1, 2)), Series("t", (-1, 3))),
        marks=(1.5, None),
        marked="m",
    )
    boxes = Boxes("x", "Boxes", "c.", Axis("x"), Axis("y"), ("g", "h"), (Box(0, 1, 0, 1, "n"), Box(1, 5, 2, 3, "o", 1)),
                  limit=2, lines=(0.5,))  # fmt: skip
    net = graph("g", "Graph", "c.", chain(4, 4), {"all": ["c0", "c1"]}, {})
    points = scatter(Rows(("n", "a", "b"), (("p", 1, 2), ("q", 2, 1))), "a", "b")
    row = lenet().layers[0]
    tile = tile_drawing("t", "Tile", tensors(row.workload, row.figures.buffers))
    made: list[Figure] = [bars, boxes, net, points, tile]
    assert [type(one) for one in made] == [Bars, Boxes, Graph, Points, Drawing]
    return made
