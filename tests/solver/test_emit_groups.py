"""C of groups of layers: strips at constant addresses and packed ones, turns, images, maps that move."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from certile import compile_model, emit_c, solve
from instances.zoo.chains import CHAINS
from solver.uses.emit import onchip
from tests.effort import thinned, tries
from tests.emitted import BUILDS, build_and_run, light_model, random_group, write
from tests.solver.test_emit import FLOATS, difference, emitted_networks
from tests.written import built

Files = Mapping[str, str | bytes]


def text_of(files: Files, begin: str) -> str:
    """All files whose names begin so."""
    return "".join(str(text) for name, text in files.items() if name.startswith(begin))


def packed(files: Files) -> bool:
    """Whether some group's strips move."""
    return "certile_reshape" in text_of(files, "group_")


def run_groups(
    seeds: Iterable[int], folder: Path, flags: str, **kinds: bool
) -> Counter[str]:  # fmt: skip
    """Write, build and run random groups (of some `kinds`) in the least memory; returns how they are written.

    Without flags as fast as may be.
    """
    how: Counter[str] = Counter()
    for seed in seeds:
        planned = random_group(random.Random(seed), **kinds)
        files = planned.files()
        if flags:
            write(files, folder / str(seed))
        printed = build_and_run(folder / str(seed), flags) if flags else built(files, folder / str(seed))
        assert "results and transfers as planned" in printed
        run = planned.runs[0]
        how["turns" if getattr(run, "blocks", ()) else "packed" if packed(files) else "standing"] += 1
        how["images"] += planned.network.operators[0].shape[0] > 1
    return how


def test_groups_in_the_bytes_that_are_counted(tmp_path: Path) -> None:
    """Seeds that run nearly every line of groups: turns, packed and standing strips, images, and broadcast operands."""
    again = random_group(random.Random(23), broadcast=True)  # columns are made again, rows are kept
    assert [again.runs[0].rows.halo, again.runs[0].columns.halo] == ["retain", "recompute"]  # type: ignore[union-attr]
    assert "CERTILE_BEFORE" in text_of(again.files(), "group_")  # pieces of the visit before are dropped first
    how = run_groups((19, 20, 38, 39), tmp_path, "") + run_groups((7,), tmp_path, "", broadcast=True)
    assert how.keys() >= {"turns", "standing", "images"}, how


def test_turns_that_add_nothing_up(tmp_path: Path) -> None:
    """A layer makes a block of channels, the next one, depthwise, the same ones of its result; one of two images."""
    how = run_groups((1, 7), tmp_path, "", passing=True)
    assert (how["turns"], how["images"]) == (2, 1), how


def test_sampled_maps(tmp_path: Path) -> None:
    """Every other pixel, of one reader or two, in both layouts, two images in turns."""
    how = run_groups((1, 5, 26), tmp_path, "", sampled=True)
    assert sum(how[kind] for kind in ("turns", "packed", "standing")) == 3, how


def test_maps_that_move_overwrite_none() -> None:
    """Random maps one behind the other, of which some go, some come and some have fewer rows from then on."""
    rng = random.Random(1)
    for _ in range(60):
        rows = [{s: rng.randint(1, 9) for s in sorted(rng.sample(range(7), 4))} for _ in "ab"]
        rows[1] = {s: min(size, rows[0].get(s, size)) for s, size in rows[1].items()}
        maps, memory = {}, np.zeros(99, int)
        for begin, sizes in enumerate(rows):
            for (s, size), at in zip(sizes.items(), accumulate(sizes.values(), initial=0), strict=False):
                maps[begin, s] = at
                memory[at : at + size] = memory[at : at + size] if begin else np.arange(size) + 100 * s
        runs = [SimpleNamespace(residents={s: (size,) for s, size in sizes.items()}) for sizes in rows]
        chip = SimpleNamespace(begins=[0, 1, 2], runs=runs, addresses=SimpleNamespace(maps=maps))
        chip._map_bytes = lambda run, s: run.residents[s][0]
        for source, to, size in onchip.OnChip.moves(cast(onchip.OnChip, chip), 1):
            memory[to : to + size] = memory[source : source + size].copy()
        for s in rows[0].keys() & rows[1].keys():
            assert list(memory[maps[1, s] : maps[1, s] + rows[1][s]]) == [100 * s + k for k in range(rows[1][s])]


@pytest.mark.slow(3)
def test_random_groups_in_the_bytes_that_are_counted(tmp_path: Path) -> None:
    how = run_groups(range(tries(2, 60)), tmp_path, BUILDS[3])
    assert how["turns"] > 0


@pytest.mark.slow(2)
def test_a_random_group_with_operands_that_are_broadcast(tmp_path: Path) -> None:
    """Nothing off the chip is read past the transfers: `make guard`."""
    run_groups(range(3, tries(4, 36)), tmp_path, BUILDS[3], broadcast=True)


@pytest.mark.slow(2)
def test_random_networks_in_groups(tmp_path: Path) -> None:
    """Strips of rows and columns, lines and rings, maps from outside, weights that stay and that pass through."""
    assert emitted_networks("fusion", range(1000, 1000 + tries(1, 100)), tmp_path, BUILDS[2]) >= 1


@pytest.mark.slow(3)
def test_where_maps_have_no_room_in_one_piece_they_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a search for constant addresses maps lie one behind the other, and move when others go."""
    monkeypatch.setattr(onchip, "placed", lambda *_: None)
    for problem, seed in thinned((("joint", 1001), ("fusion", 1007)), 2):
        assert emitted_networks(problem, range(seed, seed + 1), tmp_path / problem, BUILDS[3]) == 1
        assert "memmove(certile_ocm" in (tmp_path / problem / str(seed) / "network.c").read_text()


@pytest.mark.slow(3)
def test_two_products_take_turns(tmp_path: Path) -> None:
    """One channel of the map between at a time (docs/fusion.md): 164,608 bytes move, in 64 KiB without a gap."""
    settings = {"ocm_bytes": 65_536, "ocm_banks": 16, "psum_bytes": 1}
    plan = solve(CHAINS["products"](), "scratchpad_768k", problem="fusion", objective="bytes", settings=settings)
    assert plan.measures["bytes"] == 164_608
    emit_c(plan, tmp_path / "c")
    assert "results and transfers as planned" in build_and_run(tmp_path / "c", "-O2")


@pytest.mark.slow(20)
def test_a_fused_network_computes_what_onnxruntime_does(tmp_path: Path) -> None:
    """SqueezeNet in two groups: strips of rows and columns, in the memory that was planned with."""
    pytest.importorskip("onnxruntime")
    light_model("squeezenet", tmp_path / "model.onnx")
    made = compile_model(
        tmp_path / "model.onnx", "scratchpad_768k", tmp_path / "c", settings=FLOATS, problem="fusion", objective="bytes"
    )  # fmt: skip
    assert any(row.visits > 1 for row in made.plan.part.figures)
    printed = build_and_run(tmp_path / "c", "-O2")
    assert "transfers as planned" in printed
    assert difference(printed) < 1e-4
