"""Pages as HTML, the command `certile report`, and plans and fronts in notebooks."""

from __future__ import annotations

import json
import re
import sys
from importlib import resources, util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import certile
from instances.errors import InputError
from instances.network.network import Network
from instances.network.operators import Conv, Input
from instances.problems import PROBLEMS, Line
from solver.cli.main import main
from solver.plan.figures import Axis, Bars, Block, Cloud, Drawing, Graph, Points, Series, Table
from solver.plan.front import Front
from solver.plan.plan import Plan
from solver.show import page as pages
from solver.show.interactive import drawn
from solver.show.page import Page, Section, grid_html, text, to_html
from solver.show.tables import Column, Sheet
from solver.uses.report import kinds
from solver.uses.report.front_page import Rows, read_front, rows_page
from solver.uses.report.plan_page import common_unit
from solver.uses.why.layers import parts_alone
from tests.golden_plans import SCRATCHPAD, chain
from tests.reported import faults_of, plan_of, read_page

EVIL = "<script>alert(1)</script>\"&'</p>"


def page_of_plan(plan: Plan) -> str:
    return to_html(kinds.plan_page(plan))


@pytest.mark.few(3)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_pages_are_sound(problem: str) -> None:
    plan = plan_of(problem)
    html = page_of_plan(plan)
    assert faults_of(html) == []
    text = read_page(html).text
    assert plan.status.replace("_", " ") in text
    assert plan.network_digest in text
    assert plan.machine_digest in text
    assert html.index('id="part-what-is-proven"') < html.index("<table>") < html.index("<figure")


@pytest.mark.parametrize("problem", ["tiling", "mapping"])
def test_the_same_plan_is_the_same_page(problem: str) -> None:
    plan = plan_of(problem)
    assert page_of_plan(plan) == page_of_plan(Plan.from_json(plan.to_json()))


def evil_plan() -> Plan:
    operators = (
        Input(name="in", shape=(1, 4, 4, 4)),
        Conv(name=EVIL, inputs=("in",), shape=(1, 2, 4, 4), filters=2, kernel=(1, 1)),
        Conv(name="b$x$<b>bold</b>", inputs=(EVIL,), shape=(1, 2, 4, 4), filters=2, kernel=(1, 1)),
    )
    return certile.solve(Network(name=EVIL, operators=operators), SCRATCHPAD[0], settings=SCRATCHPAD[1])


def test_names_of_a_file_are_only_text() -> None:
    html = page_of_plan(evil_plan())
    assert faults_of(html) == []
    reader = read_page(html)
    assert "alert(1)</script>" not in html.replace("\\u003c", "")
    assert EVIL in reader.text
    assert [tag for tag, _ in reader.tags].count("script") == 3  # figures, library, page.js
    data = re.search(r'id="data-figures">(.*?)</script>', html, re.S)
    assert "<" not in data[1]
    for one in _texts(json.loads(data[1])):  # plotly reads tags in texts
        assert "<script" not in one
        assert "<b>bold" not in one


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in _texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) else []


def test_names_of_a_file_are_only_text_in_a_notebook() -> None:
    html = evil_plan()._repr_html_()
    assert "<script" not in html
    assert EVIL in read_page(html).text


@given(st.text(max_size=30))
def test_any_text_comes_back_out(said: str) -> None:
    reader = read_page(f"<p>{text(said)}</p>")
    assert [tag for tag, _ in reader.tags] == ["p"]
    assert reader.text == "".join(ch if ch.isprintable() else "?" for ch in said)


def test_nothing_is_loaded_by_construction() -> None:
    html = page_of_plan(plan_of("tiling"))
    policy = next(found for tag, found in read_page(html).tags if found.get("http-equiv") == "Content-Security-Policy")
    assert str(policy["content"]).startswith("default-src 'none'")
    style = (resources.files("solver.show") / "style.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style


def light(colour: str) -> float:
    """Relative luminance of WCAG 2.1."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_texts_have_contrast() -> None:
    style = (resources.files("solver.show") / "style.css").read_text(encoding="utf-8")
    blocks = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", one)) for one in re.findall(r"\{([^{}]*)\}", style)]
    themes = [block for block in blocks if len(block) == 9]
    assert len(themes) == 3  # light, dark by the system, dark by the button
    assert themes[1] == themes[2]
    for theme in themes:
        for name in ("ink", "quiet", "link", "good", "open", "bad"):
            for ground in ("paper", "raised"):
                low, high = sorted((light(theme[name]), light(theme[ground])))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (name, ground)


def test_plans_without_a_schedule_have_a_page() -> None:
    network = chain(4, 2)
    plan = certile.solve(network, "scratchpad_24k", settings={"ocm_bytes": 2}, objective="bytes")
    assert plan.status == "INFEASIBLE"
    html = page_of_plan(plan)
    assert faults_of(html) == []
    assert "INFEASIBLE" in read_page(html).text


def test_a_problem_without_figures_of_its_own_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROBLEMS, "knapsack", Line(package="tests.knapsack"))
    plan = certile.solve("lenet5", "scratchpad_24k", problem="knapsack")
    html = page_of_plan(plan)
    assert faults_of(html) == []
    assert plan.status in read_page(html).text


def test_layers_say_where_their_first_measure_goes() -> None:
    plan = plan_of("tiling")
    html = page_of_plan(plan)
    assert faults_of(html) == []
    row = plan.layers[0]
    (split, *_) = parts_alone(plan, row).splits
    assert split.measure == plan.objectives[0]
    assert sum(part.value for part in split.parts) == row.objective.value
    for part in split.parts:
        assert f"{part.value:,} {split.unit}, " in read_page(html).text


@pytest.mark.parametrize(
    ("tick_ps", "objective", "value", "said"),
    [
        (1, "time", 1_000_000, "1.0 us"),
        (2_500, "time", 1_000_000, "2,500.0 us"),
        (1_000_000, "time", 7, "7.0 us"),
        (5_000, "energy", 1_500_000_000, "1.5 uJ"),
        (5_000, "bytes", 1_000, ""),
    ],
)
def test_microseconds_are_those_of_the_tick(tick_ps: int, objective: str, value: int, said: str) -> None:
    plan = certile.solve(chain(4), "scratchpad_24k", engine="naive", objective=objective)
    made = plan.model_copy(
        update={
            "machine_data": plan.machine_data.model_copy(update={"tick_ps": tick_ps}),
            "objective": plan.objective.model_copy(update={"value": value}),
        }
    )
    assert common_unit(made, value) == said
    assert f"{value:,} {plan.objective.unit}" in read_page(page_of_plan(made)).text


def test_a_replay_that_fails_is_said() -> None:
    """Of the plan, and of a layer, with what was found."""
    plan = certile.solve(chain(4), "scratchpad_24k", engine="naive")
    row = plan.parts[0]
    assert "replayagrees an independent walk" in _words(plan)
    fault = row.model_copy(update={"replay": row.replay.model_copy(update={"ok": False, "faults": ("too few rows",)})})
    failed = plan.model_copy(update={"parts": (fault, *plan.parts[1:])})
    assert f"replaydoes not agree layer {row.name}: too few rows" in _words(failed)
    assert "replayagrees" not in _words(failed)


def _words(plan: Plan) -> str:
    """The text of a page, with single blanks."""
    return " ".join(read_page(page_of_plan(plan)).text.split())


# ---- fronts, benchmarks, rows ----------------------------------------------------------------------------------------


def test_fronts_have_a_page() -> None:
    front = certile.pareto(chain(4), *SCRATCHPAD[:1], settings=SCRATCHPAD[1], axes="bytes,ocm", pins=["holds=uniform"])
    html = to_html(kinds.front_page(front))
    assert faults_of(html) == []
    (figure,) = front.figures()
    assert [(p.x, p.y) for p in figure.clouds[0].points] == [
        (point.values["bytes"], point.values["ocm"]) for point in front.parts[0].points
    ]
    shown = front._repr_html_()
    assert "each replayed" in shown
    assert all(f"{point.values['bytes']:,}" in shown for point in front.parts[0].points)
    again = read_front(json.loads(front.to_json()), "here")
    assert isinstance(again, Front)
    assert again.figures()[0].table().rows[0][2:4] == figure.table().rows[0][2:4]


def test_what_is_no_front_is_refused() -> None:
    with pytest.raises(InputError, match="not a front as certile pareto writes it"):
        read_front({"units": {"bytes": "bytes"}, "parts": [{"points": 3}]}, "front x")


def test_benchmarks_have_a_page(tmp_path: Path) -> None:
    rows = [{"net": "a", "greedy": 1.25, "layers": 3}, {"net": "b", "greedy": None, "layers": 4}]
    sections = [{"title": EVIL, "rows": rows, "notes": ["n"]}, {"title": "empty", "rows": [], "notes": []}]
    path = tmp_path / "bench.json"
    path.write_text(json.dumps({"suite": "s", "sections": sections}))
    page = kinds.page_of(path)
    assert faults_of(to_html(page)) == []
    (bars,) = page.figures
    assert (bars.names, bars.series) == (("a", "b"), (Series("greedy", (1.25, None)),))


def test_rows_have_a_page() -> None:
    rows = Rows(("name", "bytes", "time (us)"), (("a", 1, 2.5), ("b", 2, 1.5)), axes=("bytes", "time (us)"))
    html = to_html(rows_page("sweep", "two rows", rows, ["Two tasks."]))
    assert faults_of(html) == []


@pytest.mark.slow(3)
def test_a_sweep_has_a_page(tmp_path: Path) -> None:
    """Two layers on two memories: sums a machine, and a machine whose memory holds no tile has none."""
    path = tmp_path / "results.sweep"
    spec = {"networks": "lenet5", "layers": ["f6", "output"], "machines": "scratchpad_64k", "objectives": "bytes"}
    certile.sweep({**spec, "set": {"ocm_bytes": [1, 1024, 2048]}}, path, jobs=1)
    page = kinds.page_of(path)
    html = to_html(page)
    assert faults_of(html) == []
    (grid,) = [grid for section in page.sections for grid in section.grids]
    (cells,) = [column.cells for column in grid.columns if column.head == "bytes"]
    sums = {
        size: sum(
            certile.solve(
                "lenet5", "scratchpad_64k", layers=name, objective="bytes", settings=[f"ocm_bytes={size}"]
            ).objective.value
            for name in ("f6", "output")
        )
        for size in (1024, 2048)
    }
    assert cells[1:] == [f"{value:,}" for value in sums.values()]
    assert "Machines that lack the plan of a layer: 1;" in read_page(html).text
    with pytest.raises(InputError, match="for plans only"):
        kinds.page_of(path, ["greedy"])


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    plan_of("tiling").save(path)
    return str(path)


def test_the_command_writes_a_page(plan_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert main(["report", plan_file, "-o", str(out), "--compare", "greedy,naive"]) == 0
    assert "figures" in capsys.readouterr().out
    html = out.read_text(encoding="utf-8")
    assert faults_of(html) == []
    assert "beside: greedy" in read_page(html).text
    assert out.stat().st_size < 5_000_000


@pytest.mark.slow(4)
def test_the_command_lists_and_writes_figures(
    plan_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", plan_file]) == 0
    listed = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert "roofline" in listed
    assert main(["report", plan_file, "--svg", str(tmp_path / "s"), "--png", str(tmp_path / "p")]) == 0
    assert sorted(one.stem for one in (tmp_path / "s").iterdir()) == sorted(listed)
    assert (tmp_path / "p" / "roofline.png").read_bytes().startswith(b"\x89PNG")
    assert main(["report", plan_file, "--figure", "roofline", "-o", str(tmp_path / "one.svg")]) == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "s" / "roofline.svg").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--figure", "rooflin", "-o", "x.svg"], "did you mean roofline?"),
        (["--figure", "roofline"], "--figure: needs -o"),
        (["-o", "x.png"], "a page has many figures"),
        (["--compare", "cp"], "unknown engine"),
        (["--compare", "auto", "-o", "x.html"], "name the engines"),
    ],
)
def test_bad_options_are_one_line(
    arguments: list[str], said: str, plan_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["report", plan_file, *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "data", [b"", b"not json", b"[1]", b'{"format": "certile-plan/9"}', b'{"format": "certile-front/2"}']
)
def test_other_files_are_one_line(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    assert main(["report", str(path), "-o", str(tmp_path / "y.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "y.html").exists()


def test_what_is_not_installed_is_named(
    plan_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *more: None if name == "plotly" else found(name, *more))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    pages._library.cache_clear()
    for arguments in (["-o", str(tmp_path / "x.html")], ["--svg", str(tmp_path / "s")]):
        assert main(["report", plan_file, *arguments]) == 2
        error = capsys.readouterr().err
        assert 'pip install "certile[report]"' in error
        assert error.count("\n") == 1


# ---- Python ----------------------------------------------------------------------------------------------------------


def test_plans_write_their_report(tmp_path: Path) -> None:
    plan = plan_of("tiling")
    plan.report(tmp_path / "a.html")
    certile.report(plan, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert plan.figures()


def test_notebooks_show_status_and_table() -> None:
    html = plan_of("tiling")._repr_html_()
    reader = read_page(html)
    assert reader.faults == []
    assert "OPTIMAL" in reader.text
    assert "loop order" in reader.text
    assert not any(tag == "button" for tag, _ in reader.tags)


# ---- edges -----------------------------------------------------------------------------------------------------------


def test_empty_figures_are_left_out() -> None:
    figures = (
        Bars("a", "t", "c.", Axis("x"), (), ()), Points("b", "t", "c.", Axis("x"), Axis("y"), (Cloud("n", ()),)),
        Graph("d", "t", "c.", (), (), ()), Drawing("e", "t", "c.", (), (), (), Table((), ())),
    )  # fmt: skip
    page = Page("t", "s", (Section("one", figures=figures), Section("one", blocks=(Block("b", "", "x", figures),))))
    assert page.figures == ()
    html = to_html(page)
    assert faults_of(html) == []
    assert "<figure" not in html
    assert len(html) < 50_000  # no plotting library where nothing is drawn


def test_tables_say_what_sorts() -> None:
    html = grid_html(Sheet([Column("name", ["a"], total="sum", words=True), Column("x", ["1"], total="1")]))
    heads = [found for tag, found in read_page(html).tags if tag == "th" and found["scope"] == "col"]
    assert [found["aria-sort"] for found in heads] == ["none", "none"]
    assert "aria-sort" not in grid_html(Sheet([Column("name", ["a"], words=True)]), sorts=False)


def test_an_unknown_kind_of_figure_is_refused() -> None:
    with pytest.raises(TypeError, match="nothing draws it"):
        drawn(object())
