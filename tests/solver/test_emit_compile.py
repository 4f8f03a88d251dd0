"""As which problem `certile compile` plans a model, and what it falls back to: a line why, and before the search."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from formulations.clock import Clock
from instances.errors import InputError
from solver.calls.check import faults_of
from solver.calls.solve import solve
from solver.problems.joint import rows_of
from solver.uses.emit import emit as compiling
from solver.uses.emit.ahead import whole
from solver.uses.emit.ahead.placing import most
from solver.uses.emit.emit import Compiled, compile_model
from tests.emitted import BUILDS, build_and_run
from tests.onnx_models import model_of

FLOATS = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 4)


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def two(folder: Path, *between: str) -> Path:
    """Two convolutions of 4 channels on 8 x 8 pixels, and maybe an operator between them."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "one", pads=[1] * 4)]
    more = {"LRN": {"size": 3}, "DepthToSpace": {"blocksize": 2}}
    nodes += [helper.make_node(op, ["a"], ["b"], op.lower(), **more[op]) for op in between]
    nodes += [helper.make_node("Conv", ["b" if between else "a", "v"], ["y"], "two")]
    path = folder / "two.onnx"
    last = weights(4, 1 if "DepthToSpace" in between else 4, 1, 1)
    onnx.save(model_of(nodes, {"x": (1, 3, 8, 8)}, held={"w": weights(4, 3, 3, 3), "v": last}), path)
    return path


def compiled(path: Path, machine: str = "scratchpad_768k", settings: dict[str, int] | None = None,
             **more: Any) -> Compiled:  # fmt: skip
    return compile_model(path, machine, path.parent / "c", settings=FLOATS | (settings or {}), **more)


def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object, **__: object) -> None:
        raise AssertionError("a search before the refusal")

    monkeypatch.setattr(compiling, "solve", search)


@pytest.mark.parametrize(("machine", "bank"), [("scratchpad_768k", 16_384), ("scratchpad_64k", 1024)])
def test_the_least_time_with_transfers_ahead(tmp_path: Path, machine: str, bank: int) -> None:
    """In banks and in bytes; the report has the time of the timeline, which is the objective, and its fullest step."""
    pytest.importorskip("onnxruntime")
    made = compiled(two(tmp_path), machine)
    assert (made.plan.problem, made.plan.objectives, made.notes) == ("fusion", ("time",), ())
    assert "ahead.c" in made.files
    assert made.plan.objective is not None
    assert made.time_ticks == made.plan.objective.value
    assert f"time: {made.time_ticks / 8000:,.1f} us; " in "\n".join(made.lines())  # ticks of 125 ps
    # Input 4 * 3 * 64 = 768, weights 432 and 64, result 1,024, and the map between: 1,024, or the bank that it lies in.
    assert 768 <= made.peak_bytes <= 768 + 432 + 64 + 1024 + bank
    assert "FAILED" not in build_and_run(tmp_path / "c", BUILDS[1])


def test_the_time_where_layers_begin_with_their_transfers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known before, it is what is planned; else the sum of what layers and groups take, as the plan's is ahead."""
    made = compiled(two(tmp_path), transfers="steps")
    assert "ahead.c" not in made.files
    assert [pin for pin in made.plan.options.pins if pin.startswith("prefetch")] == ["prefetch=no"]
    assert made.time_ticks == (made.plan.measures or {})["time"]
    shutil.rmtree(tmp_path / "c")

    def refuse(*_: object) -> None:
        raise InputError("no addresses")

    monkeypatch.setattr(compiling, "_ahead", refuse)
    other = compiled(two(tmp_path))
    assert (other.plan.options.pins, "ahead.c" in other.files) == ((), False)
    assert other.time_ticks == sum(row.figures.ticks for row in rows_of(other.plan))
    assert made.time_ticks > (other.plan.measures or {})["time"]


def test_a_plan_that_finds_no_addresses_gives_time_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found only where less is on chip than the plan has in its fullest step; the report says what it cost.

    That is `one` with the weights of `two` beside it: 768 + 432 + 1,024 + 64 of 2,304 bytes.
    """
    least, placed = list[int](), whole.placed

    def with_less(*objects: Any) -> Any:
        least.append(int(most(objects[0], *objects[2:4]).max()))
        return placed(*objects) if least[-1] < least[0] else 1  # the step

    monkeypatch.setattr(whole, "placed", with_less)
    made = compiled(two(tmp_path), settings={"ocm_bytes": 2304, "ocm_banks": 0}, pins=["fuse=one..two", "strip=8"])
    assert "ahead.c" in made.files
    assert (least[0], least[-1], made.peak_bytes) == (2288, 2224, 2224)
    assert re.fullmatch(r"transfers are ordered anew, .*addresses: [0-9.]+ % more time", made.notes[0])
    assert made.plan.objective is not None
    assert made.time_ticks == made.plan.objective.value == (made.plan.measures or {})["time"]
    assert faults_of(made.plan) == []


def test_a_pin_of_transfers_is_obeyed(tmp_path: Path) -> None:
    made = compiled(two(tmp_path), transfers="steps", pins=["prefetch<=1"])
    assert made.plan.options.pins == ("prefetch<=1",)


@pytest.mark.parametrize(
    ("machine", "settings", "objective", "problem"),
    [
        ("scratchpad_768k", {"im2col_rows": 1}, None, "joint"),  # fusion keeps no room for these
        ("scratchpad_768k", {"im2col_rows": 1}, "time", "tiling"),  # joint does not decide time
        ("scratchpad_768k", {}, "bytes", "fusion"),
        ("nmp", {}, None, "slicing"),  # no memory that all operands share
    ],
)
def test_the_next_problem_where_one_cannot_be_asked(
    machine: str, settings: dict[str, int], objective: str | None, problem: str, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Nothing is searched of it, and a line says why."""
    caplog.set_level(logging.INFO)
    made = compiled(two(tmp_path), machine, settings, objective=objective)
    assert made.plan.problem == problem
    said = [line for line in caplog.messages if "not planned as problem" in line]
    assert len(said) == {"joint": 1, "tiling": 2}.get(problem, 0)
    assert all("im2col_rows" in line or "decides time" in line for line in said)
    assert objective is None or made.plan.objectives == (objective,)


def test_a_problem_that_is_asked_for_is_obeyed_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = two(tmp_path)
    no_search(monkeypatch)
    with pytest.raises(InputError, match="problem fusion keeps no room for im2col_rows"):
        compiled(path, settings={"im2col_rows": 1}, problem="fusion")
    with pytest.raises(InputError, match="problem joint decides bytes"):
        compiled(path, problem="joint", objective="time")
    with pytest.raises(InputError, match="C is written of tiling, slicing, joint, fusion"):
        compiled(path, problem="mesh")


def test_what_no_problem_takes_is_refused_before_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reason of all of them once, others by the problem."""
    path = two(tmp_path)
    no_search(monkeypatch)
    with pytest.raises(InputError, match=r"^model \S+two.onnx: .*joules.*$") as caught:
        compiled(path, objective="joules")
    assert {name for name in ("fusion", "joint", "tiling") if f"problem {name}: " in str(caught.value)} in (
        set(), {"fusion", "joint", "tiling"},
    )  # fmt: skip
    with pytest.raises(InputError, match=r"problem fusion: .*none.*problem tiling: .*fuse"):
        compiled(path, pins=["fuse=one..none"])


def test_transfers_that_cannot_run_ahead_are_refused_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host computes a norm, a layer sees other rows; layers by themselves have no queue; a word for nothing."""
    no_search(monkeypatch)
    with pytest.raises(InputError, match=r"transfers ahead: the host computes between layers \(.*lrn"):
        compiled(two(tmp_path, "LRN"), transfers="ahead")
    with pytest.raises(InputError, match=r"transfers ahead: .* sees the result of .* reshaped"):
        compiled(two(tmp_path, "DepthToSpace"), transfers="ahead")
    with pytest.raises(InputError, match="transfers ahead: of plans of problems joint and fusion, not of slicing"):
        compiled(two(tmp_path), "nmp", transfers="ahead")
    with pytest.raises(InputError, match="transfers ahead: of plans of problems joint and fusion, not of tiling"):
        compiled(two(tmp_path), problem="tiling", transfers="ahead")
    with pytest.raises(InputError, match="transfers soon: ahead or steps is accepted"):
        compiled(two(tmp_path), transfers="soon")


def test_a_norm_of_the_host_between_layers(tmp_path: Path) -> None:
    """The map before and the one behind it lie in memory; each layer begins with its transfers, and is planned so."""
    pytest.importorskip("onnxruntime")
    made = compiled(two(tmp_path, "LRN"))
    assert made.plan.problem == "fusion"
    assert "ahead.c" not in made.files
    assert made.plan.options.pins == ("prefetch=no",)
    assert made.time_ticks == (made.plan.measures or {})["time"]
    assert len(made.notes) == 1
    assert "FAILED" not in build_and_run(tmp_path / "c", BUILDS[1])


@pytest.mark.parametrize(("asked", "refused", "taken"), [
    (None, 1, "joint"), (None, 2, "tiling"), (None, 3, ""), ("fusion", 1, ""),
])  # fmt: skip
def test_the_next_problem_where_no_c_is_written_of_a_plan(
    asked: str | None, refused: int, taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """The first so many plans are refused; the last refusal stands, a problem that is asked for has no next one."""
    caplog.set_level(logging.INFO)
    seen, write = list[str](), compiling.files_of

    def emit(plan: Any, *args: Any, **more: Any) -> Mapping[str, str | bytes]:
        seen.append(plan.problem)
        if len(seen) <= refused:
            raise InputError(f"no C of {plan.problem}")
        return write(plan, *args, **more)

    monkeypatch.setattr(compiling, "files_of", emit)
    path = two(tmp_path)
    if not taken:
        with pytest.raises(InputError, match=f"no C of {asked or 'tiling'}"):
            compiled(path, problem=asked)
        return
    made = compiled(path)
    before = seen[-2]
    said = f"planned as problem {taken}, as no C is written of problem {before}: no C of {before}"
    assert made.plan.problem == seen[-1] == taken
    assert made.notes == (said,)
    assert [line for line in caplog.messages if "no C is written" in line][-1] == said


def test_searches_share_the_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 s the first has 60; after 10 the next has three quarters of 70, after 30 the last what is left: 40."""
    now, given, ends = [0.0], list[float](), iter((10.0, 40.0))
    of = partial(Clock.of, now=lambda: now[0])
    monkeypatch.setattr(compiling, "Clock", SimpleNamespace(of=of))

    def search(*args: Any, **more: Any) -> Any:
        given.append(more.pop("time_limit_s"))
        if len(given) == 3:
            return solve(*args, **more)
        now[0] = next(ends)
        return SimpleNamespace(status="NO_SOLUTION_FOUND", conflicts=())

    monkeypatch.setattr(compiling, "solve", search)
    compiled(two(tmp_path), time_limit_s=80)
    assert given == [60, 52.5, 40]


def test_channels_in_blocks_are_refused_where_the_model_has_none(tmp_path: Path) -> None:
    """Maps of 4 channels are no whole blocks of 8, and are of 4, where the plan is that without blocks."""
    path = two(tmp_path)
    with pytest.raises(InputError, match=r"machine scratchpad_768k: channels in blocks of 8, .*: plan with --set"):
        compiled(path, settings={"channel_block": 8})
    compiled(path, settings={"channel_block": 4})
