"""Replay of a network whose layers share a memory in banks: what lies where, layer by layer, and what must be in DRAM.

Every layer is walked by `hwmodels.nest.replay` with the rows that are on chip; around it, this referee keeps account of
banks and rows: a bank has one owner at a time, a map's banks hold its rows, rows that left the chip never come back,
every row that a layer reads from DRAM was written there, results of the network are written whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hwmodels.nest.replay import Replay, replay
from hwmodels.schedule import LayerRun
from instances.machine import Machine
from instances.stores import Stores


@dataclass(frozen=True)
class JointReplay:
    """What happened: the walk of every layer, and everything that is wrong."""

    layers: tuple[Replay, ...]
    faults: tuple[str, ...]


@dataclass
class _Map:
    """A store during the walk: its banks, the rows on chip, and per part the first row that is in DRAM."""

    banks: tuple[int, ...]
    rows: int
    written: dict[int, int]


def replay_joint(found: Stores, machine: Machine, runs: Sequence[LayerRun]) -> JointReplay:
    """Walk all layers in their order; a run's residents are numbers of stores."""
    faults: list[str] = []
    maps: dict[int, _Map] = {}
    walked: list[Replay] = []
    known: dict[object, Replay] = {}
    if len(runs) != len(found.layers):
        return JointReplay((), (f"the plan has {len(runs)} layers, the network {len(found.layers)}",))
    for t, run in enumerate(runs):
        name = found.layers[t].name
        said = [*_banks(found, machine, run), *_before(found, t, run, maps)]
        if said:
            return JointReplay((), tuple(f"layer {name}: {fault}" for fault in said))
        layer = found.layer(t, run.rows, run.unwritten)
        key = layer.signature(), run.nest
        if key not in known:
            known[key] = replay(layer, machine, run.nest)
        walked.append(known[key])
        faults += [f"layer {name}: {fault}" for fault in walked[-1].faults]
        room, taken = len(run.banks) * machine.bank_bytes, walked[-1].outcome.occupancy_bytes["ocm"]
        if taken > room:
            faults.append(f"layer {name}: tiles take {taken:,} bytes, {len(run.banks)} banks hold {room:,}")
        _after(found, t, run, maps)
    faults += _results(found, maps)
    return JointReplay(tuple(walked), tuple(dict.fromkeys(faults)))


def _banks(found: Stores, machine: Machine, run: LayerRun) -> Iterator[str]:
    owner: dict[int, str] = {}
    owned = [("tiles", run.banks), *((found.stores[s].name, banks) for s, (_, banks) in run.residents.items())]
    for name, banks in owned:
        for bank in banks:
            if not 0 <= bank < machine.ocm_banks:
                yield f"bank {bank} of {name} does not exist, {machine.name} has {machine.ocm_banks}"
            elif bank in owner:
                yield f"bank {bank} belongs to {owner[bank]} and to {name}"
            owner[bank] = name
    for s, (rows, banks) in run.residents.items():
        store = found.stores[s]
        need, room = rows * store.row_elements * machine.out_bytes, len(banks) * machine.bank_bytes
        if need > room or rows > store.rows:
            yield f"{rows} rows of {store.name} take {need:,} bytes, {len(banks)} banks hold {room:,}"


def _before(found: Stores, t: int, run: LayerRun, maps: Mapping[int, _Map]) -> Iterator[str]:
    """What the layer finds on chip was there before, unless it is the first to write it; the rest is in DRAM."""
    for s, (rows, banks) in run.residents.items():
        store, was = found.stores[s], maps.get(s)
        if store.dram:
            yield f"{store.name} must lie in DRAM"
        elif was is None and s != found.writes[t]:
            yield f"{store.name} is on chip, no layer has written it yet"
        elif was is not None and (rows > was.rows or was.banks[: len(banks)] != banks):
            yield f"{rows} rows of {store.name} are on chip, in the layer before {was.rows} were, or in other banks"
    for s in dict.fromkeys(found.reads[t]):
        there = run.residents[s][0] if s in run.residents else 0
        for part, first in maps[s].written.items() if s in maps else ():
            if first > there:
                yield (
                    f"rows {there} to {first - 1} of {found.stores[s].name} are read from DRAM, "
                    f"{found.layers[part].name} never wrote them"
                )
    there = run.residents[found.writes[t]][0] if found.writes[t] in run.residents else 0
    if run.unwritten > there:
        yield f"{run.unwritten} rows of the result are not written, {there} stay on chip"


def _after(found: Stores, t: int, run: LayerRun, maps: dict[int, _Map]) -> None:
    for s, was in maps.items():
        rows, banks = run.residents.get(s, (0, ()))
        was.rows, was.banks = rows, banks
    rows, banks = run.residents.get(found.writes[t], (0, ()))
    made = maps.setdefault(found.writes[t], _Map(banks, rows, {}))
    made.written[t] = run.unwritten


def _results(found: Stores, maps: Mapping[int, _Map]) -> Iterator[str]:
    for s, store in enumerate(found.stores):
        kept = [found.layers[t].name for t, first in maps[s].written.items() if first] if s in maps else []
        if kept and (store.dram or store.results):
            yield f"{', '.join(kept)}: the result must be in DRAM, some rows are not written"
