"""Copies of this process: what they send, and what becomes of work whose copy ends early (`formulations.processes`)."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from formulations.clock import Clock, TimeUp
from formulations.fusion.latency import paths
from formulations.fusion.latency.options import Options
from formulations.fusion.latency.paths import Paths
from formulations.processes import allowed, elsewhere, processes
from solver.ask.watch import Watch
from solver.search.workers import run
from tests.formulations.test_fusion_latency import part_of, pooled

forks = pytest.mark.skipif(sys.platform != "linux", reason="needs copies of a process")


@forks
def test_a_copy_sends_all_values_in_their_order() -> None:
    """More than a pipe holds before the first one is asked for, made of what is known here."""
    known = bytes(100_000)

    def work() -> Iterator[tuple[int, int, bytes]]:
        for n in range(20):
            yield os.getpid(), n, known

    with elsewhere(work) as sent:
        found = [*sent]
    assert [(n, size) for _, n, size in found] == [(n, known) for n in range(20)]
    assert os.getpid() not in {pid for pid, *_ in found}


@forks
@pytest.mark.parametrize("how", ["raised", "killed"])
def test_a_copy_that_ends_early_is_an_error(how: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Behind what it sent; it says nothing by itself."""

    def work() -> Iterator[int]:
        yield 1
        if how == "raised":
            raise ValueError("of the copy")
        os.kill(os.getpid(), signal.SIGKILL)

    with elsewhere(work) as sent:
        assert next(sent) == 1
        with pytest.raises(EOFError, match="ended before its work"):
            next(sent)
    assert capfd.readouterr() == ("", "")


@forks
def test_a_copy_hears_no_interrupt_and_ends_with_the_block(tmp_path: Path) -> None:
    """Ctrl-C reaches all processes of a terminal; work that nobody waits for is given up."""

    def work() -> Iterator[int]:
        os.kill(os.getpid(), signal.SIGINT)
        yield os.getpid()
        time.sleep(60)
        (tmp_path / "went on").touch()

    begin = time.monotonic()
    with elsewhere(work) as sent:
        pid = next(sent)
    assert not psutil.pid_exists(pid)
    assert time.monotonic() - begin < 30


def test_one_process_unless_more_are_allowed() -> None:
    """A job by itself has all, of several each its share; in a copy there is one."""
    seen = dict[str, int]()

    class Asks:
        def __init__(self, name: str) -> None:
            self.name = name

        def noted(self, note: str) -> Asks:
            return self

        def decide(self, time_limit_s: float | None, watch: Watch) -> Asks:
            seen[self.name] = processes()
            return self

    assert processes() == 1
    with Watch(None, 2**62) as watch:
        run({0: Asks("alone")}, 4, watch, lambda *_: None)
        run({0: Asks("single")}, 1, watch, lambda *_: None)
    most = 4 if sys.platform == "linux" else 1
    assert seen == {"alone": most, "single": 1}
    assert processes() == 1
    if most > 1:
        with allowed(3), elsewhere(lambda: [processes()]) as sent:
            assert [*sent] == [1]
            assert processes() == 3


@forks
@pytest.mark.parametrize("number", [2, 3])
def test_ways_are_the_same_in_several_processes(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Labels, ways and their number; also where a copy dies on its way."""
    monkeypatch.setattr(paths, "MANY_CUTS", 2)
    part = part_of(pooled(), ocm_bytes=4096, ocm_banks=64)

    def found() -> tuple[object, ...]:
        made = Paths(Options(part.groups, 2**10, part._nest_in), longest=4)
        ways = [[(way.first, way.last, way.option, way.kept, way.place, way.matrix.tolist()) for way in move.ways]
                for moves in made.moves for move in moves]  # fmt: skip
        return made.looked, made.ends(), ways, [one.clocks.tolist() for one in made.labels.values()]

    alone = found()
    here, asked = os.getpid(), list[int]()
    ways = Options.ways

    def counted(self: Options, first: int, *rest: object) -> object:
        asked.append(first)
        return ways(self, first, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Options, "ways", counted)
    with allowed(number):
        assert found() == alone
    assert {first % number for first in asked} == {0}

    def dies(self: Options, first: int, *rest: object) -> object:
        if os.getpid() != here and first > 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return ways(self, first, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Options, "ways", dies)
    with allowed(number):
        assert found() == alone


@forks
def test_no_copy_is_left_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends in the middle; its copies with it."""
    monkeypatch.setattr(paths, "MANY_CUTS", 2)
    part = part_of(pooled(), ocm_bytes=4096, ocm_banks=64)
    with allowed(2), pytest.raises(TimeUp):
        Paths(Options(part.groups, 2**10, part._nest_in), Clock(0.0, lambda: 1.0))
    assert not [one for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE]
