"""From a plan to a folder of C files; and from an ONNX file, which is planned as a whole, in one call."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formulations.clock import Clock
from hwmodels.levels.schedule import LevelNest
from hwmodels.timeline.price import occupancy
from instances.errors import InputError, OutputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.stores import stores
from instances.onnx.file import is_model
from instances.onnx.model import OnnxModel, read_model
from instances.onnx.reader import read_onnx
from instances.problems import either, nested, written
from solver.ask.options import as_texts, check_time_limit, pick_machine
from solver.ask.progress import Progress
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.problems.joint import is_shared, rows_of
from solver.problems.layers import is_layers, layer_rows
from solver.problems.registry import PROBLEMS
from solver.uses.emit.ahead.addressed import addressed, carried, said_of
from solver.uses.emit.ahead.program import AheadPlanned
from solver.uses.emit.ahead.seen import check_seen
from solver.uses.emit.levels.program import levels_files
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.network import NetworkPlanned, alone
from solver.uses.emit.onchip import AnyRun, OnChip, no_zeros
from solver.uses.emit.preflight import Refusals, check_model, reasons_of
from solver.uses.emit.program import Planned, single_layers

logger = logging.getLogger(__name__)

#: When transfers of a whole network run.
TRANSFERS = "ahead", "steps"


def emit_c(
    plan: Plan, out: str | os.PathLike[str], model: str | os.PathLike[str] | OnnxModel | None = None, *,
    memory_bytes: int | None = None, batch: int | None = None, symbols: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None, requantise: str | None = None,
    states: Mapping[str, str] | None = None, transfers: str | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Write C11 that carries a plan out, and checks itself.

    Parameters
    ----------
    plan : Plan
        With a schedule for every layer: nests of tiles, or nests over memories in levels.
    model : str, path or OnnxModel, optional
        The ONNX file that was planned, or what was read of it: the program computes what it does, with the machine's
        elements: integers of a quantised model, or floats of 4 or 2 bytes.
    memory_bytes : int, optional
        Of plans of whole networks, the bytes of the memory on chip, where it has more than was planned with: then
        fewer strips of groups have to move.
    batch, symbols, shapes, values
        Open sizes of the model and constant inputs, as the plan has them.
    requantise : str, optional
        How sums of a quantised model become results: "float", or by a multiplier and a shift "double" (gemmlowp,
        TFLite), "single" (its single rounding, CMSIS-NN) or "even"; by default as the machine says.
    states : mapping, optional
        Inputs of the model that the program keeps from one call to the next -> the result that becomes them.
    transfers : str, optional
        "ahead": of plans of whole networks transfers are queued and waited for as the plan's queue says; "steps": each
        layer or group begins with its own. By default ahead, where C of that can be written: else "ahead" says why not.
    out : str or path
        A folder that does not exist yet, or is empty.

    Returns
    -------
    tuple of str
        The names of the files.

    Raises
    ------
    InputError
        If something cannot be written as C: nothing is written then. Names what and why.
    OutputError
        If the disk is full: the folder is as it was, and the files are among temporary files, if there is room.
    """
    folder = check_folder(out)
    sizes: Any = {"batch": batch, "symbols": symbols, "shapes": shapes, "values": values}
    read = model if model is None or isinstance(model, OnnxModel) else read_model(model, **sizes)
    if read is None and states:
        raise InputError(f"state {next(iter(states))}: of a model, and none is named")
    files = files_of(plan, read, memory_bytes, requantise, states, transfers)
    _write(folder, files)
    return tuple(sorted(files))


def check_folder(out: str | os.PathLike[str]) -> Path:
    """Return a folder that is new or empty, and can be made; raises InputError for others."""
    folder = Path(out)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"folder {folder}: is not empty: name a new one, or remove it first")
        above = next(parent for parent in folder.absolute().parents if parent.exists())
    except (OSError, ValueError) as error:
        raise InputError(f"folder {folder}: cannot be made: {getattr(error, 'strerror', None) or error}") from None
    if not above.is_dir():
        raise InputError(f"folder {folder}: cannot be made: {above} is no folder")
    if not os.access(above, os.W_OK):
        raise InputError(f"folder {folder}: cannot be made: no permission to write to {above}")
    return folder


def check_transfers(transfers: str | None) -> None:
    """Raise InputError for a word that says nothing of transfers."""
    if transfers not in (None, *TRANSFERS):
        raise InputError(f"transfers {transfers}: {' or '.join(TRANSFERS)} is accepted")


def not_ahead(problem: str) -> InputError:
    """The refusal of transfers ahead of layers that are planned by themselves."""
    return InputError(f"transfers ahead: of plans of problems {either(nested('network'))}, not of {problem}")


def no_steps() -> InputError:
    """The refusal of transfers with their steps where tiles go through memories in levels."""
    return InputError("transfers steps: on memories in levels C is written of transfers that run ahead alone")


def _more_memory(problem: str) -> InputError:
    """The refusal of another size of the memory where layers are planned by themselves."""
    return InputError(f"memory_bytes: for plans of problems {either(nested('network'))}, not of {problem}")


def _not_of_levels(
    problem: str, model: OnnxModel | None, memory_bytes: int | None, transfers: str | None
) -> Iterator[str]:  # fmt: skip
    """What is asked for and C of memories in levels does not have."""
    if model is not None:
        yield f"{model.where}: C of problem {problem} computes on integers, without a model"
    if memory_bytes is not None:
        yield str(_more_memory(problem))
    if transfers == "ahead":
        yield str(not_ahead(problem))


def files_of(
    plan: Plan, model: OnnxModel | None = None, memory_bytes: int | None = None, requantise: str | None = None,
    states: Mapping[str, str] | None = None, transfers: str | None = None,
) -> Mapping[str, str | bytes]:  # fmt: skip
    """Return the text of every file by its name; raises InputError as `emit_c`."""
    check_transfers(transfers)
    if plan.types.schedule is LevelNest:
        return levels_files(plan, *_not_of_levels(plan.problem, model, memory_bytes, transfers))
    meaning = None if model is None else Meaning(model, plan.machine_data, rule=requantise, states=states or {})
    if is_shared(plan):
        if plan.schedule is None:
            raise InputError(f"plan of {plan.network}: no schedule")
        levels = plan.machine_data.near is not None
        if levels and transfers == "steps":
            raise no_steps()
        if meaning and meaning.model.network.layers != plan.network_data.layers:
            raise InputError(f"{meaning.model.where}: its layers are not those of the plan of {plan.network}")
        for store in stores(plan.network_data).stores if plan.problem == "fusion" else ():
            if store.zeros:
                raise no_zeros(store)
        network = plan.network_data
        if meaning:
            network = meaning.model.network.model_copy(update={"in_dram": network.in_dram})
        machine, least = plan.machine_data, plan.machine_data.memories["ocm"]
        if memory_bytes is not None and memory_bytes < least:
            said = f"the plan needs {least:,}, a number no smaller is accepted"
            raise InputError(f"memory_bytes {memory_bytes:,}: {said}")
        machine = machine if memory_bytes is None else machine.model_copy(update={"ocm_bytes": memory_bytes})
        whole = network, machine, plan.schedule, meaning
        if transfers != "steps":
            try:
                return _ahead(plan, *whole)
            except InputError as error:
                if transfers == "ahead" or levels:
                    raise
                logger.info("plan of %s: layers and groups begin with their transfers: %s", plan.network, error)
        return NetworkPlanned(*whole).files()
    if transfers == "ahead":
        raise not_ahead(plan.problem)
    if memory_bytes is not None:
        raise _more_memory(plan.problem)
    if not is_layers(plan):
        said = f"C is written of problems {either(written())}, not of {plan.problem}"
        raise InputError(f"plan of {plan.network}: {said}")
    missing = [layer.layer for layer in plan.layers if layer.schedule is None]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise InputError(f"plan of {plan.network}: no schedule for {shown}")
    machine, made = plan.machine_data, [(layer.workload, layer.schedule) for layer in plan.layers]
    planned = [Planned(layer, machine, nest) for layer, nest in made if nest is not None]
    if meaning is None:
        return single_layers(planned)
    network = meaning.model.network
    if network.layers != tuple(one.layer for one in planned):
        said = "plan all of them, with --all-kinds"
        raise InputError(f"{meaning.model.where}: its layers are not those of the plan of {plan.network}: {said}")
    nests = alone(network, [one.nest for one in planned])
    return NetworkPlanned(network, plan.machine_data, nests, meaning, True).files()


def _ahead(
    plan: Plan, network: Network, machine: Machine, runs: Sequence[AnyRun], meaning: Meaning | None
) -> Mapping[str, str | bytes]:  # fmt: skip
    """The files of a program whose transfers run ahead; raises InputError where it cannot be written."""
    if said := _several(machine):
        raise InputError(said)
    return AheadPlanned(network, machine, runs, meaning, carried=carried(plan)).files()


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write all files into a folder; where that fails now, among temporary files, and say so by OutputError."""
    try:
        _place(folder, files)
        return
    except OSError as error:
        said = f"folder {folder}: cannot be written: {error.strerror}"
    try:
        instead = Path(tempfile.mkdtemp(prefix="certile_")) / (folder.name or "out")
        _place(instead, files)
    except OSError:
        raise OutputError(said) from None
    raise OutputError(f"{said}; the files are in {instead} instead")


def _place(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write all files into a new folder beside it, then rename it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, text in files.items():
            (aside / name).write_bytes(text.encode() if isinstance(text, str) else text)
        aside.chmod(0o755)
        os.replace(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


# ---- from an ONNX file ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiled:
    """A program and what is known of it."""

    plan: Plan
    files: tuple[str, ...]
    bytes: int
    """To and from the memory off the chip."""
    peak_bytes: int
    """The most that tiles and maps take on chip at one time; where transfers run ahead with what these bring, as the
    plan counts it: maps that stay take whole banks.
    """
    time_ticks: int
    """The latency of the plan, with transfers ahead or without, where that is known before the search; else the sum of
    what layers and groups take.
    """
    macs: int
    """Multiply-accumulates of the plan, those that are computed again included."""
    elements: str = ""
    """What maps and sums are held as."""
    notes: tuple[str, ...] = ()
    """Which maps lie in memory for the host; why it was not planned as a problem that goes before."""

    def lines(self) -> list[str]:
        """The report, a line each."""
        machine, plan = self.plan.machine_data, self.plan
        gap = "" if plan.bound is None or plan.objective is None else f", bound {plan.bound:,}"
        room, value = sum(machine.memories.values()), 0 if plan.objective is None else plan.objective.value
        return [
            f"plan: {plan.problem}, {plan.status}, {plan.objectives[0]} {value:,}{gap}",
            f"bytes: {self.bytes:,} to and from memory",
            f"peak: {self.peak_bytes:,} of {room:,} bytes on chip",
            f"time: {self.time_ticks * machine.tick_ps / 1e6:,.1f} us; {self.macs:,} MACs",
            f"elements: {self.elements}",
            *self.notes,
        ]


def _checked(
    read: OnnxModel, machine: Machine, why_not: Sequence[str], requantise: str | None
) -> tuple[Refusals, str | None]:  # fmt: skip
    """As `check_model`, and the rule: floats where that of the file's format cannot be had, and none is asked for."""
    try:
        return check_model(read, machine, why_not, requantise), requantise
    except InputError as error:
        asked = requantise or machine.requantise != "float" or not read.file.rule
        if asked or "requantise float" not in str(error):
            raise
        logger.warning("%s: results are rounded in floats, so they may be a step off: %s", read.where, error)
        return check_model(read, machine, why_not, "float"), "float"


def compile_model(
    model: str | os.PathLike[str], machine: str | os.PathLike[str] | Machine, out: str | os.PathLike[str], *,
    objective: str | None = None, pins: Sequence[str] | None = None,
    settings: Sequence[str] | Mapping[str, str | int] | None = None,
    problem: str | None = None, time_limit_s: float | None = None, memory_limit: int | str | None = None,
    batch: int | None = None,
    symbols: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
    requantise: str | None = None, states: Mapping[str, str] | None = None, transfers: str | None = None,
    progress: Progress | None = None,
) -> Compiled:  # fmt: skip
    """Plan an ONNX model and write C that runs it.

    Parameters
    ----------
    problem : str, optional
        By default fusion with the least time, where all operands share a memory (`ocm_bytes`); where that cannot be
        asked of the model or the machine, or no C of its plan can be written, joint; then tiling or slicing, layer by
        layer. One that is asked for is obeyed or refused, as is an objective.
    time_limit_s : float, optional
        For all searches together; each leaves a quarter of what is left to those that may have to follow it.
    batch, symbols, shapes, values
        Open sizes and constant inputs, as of `instances.load.load_network`.
    requantise, states, transfers
        As of `emit_c`.
    out : str or path
        A folder that does not exist yet, or is empty.

    Raises
    ------
    InputError
        If the model cannot be planned, or C of it cannot be written: names what and why, and nothing is written.
    """
    if not is_model(model):
        raise InputError(f"model {os.fspath(model)}: an .onnx or .tflite file is expected")
    clock = Clock.of(check_time_limit(time_limit_s))
    given: Any = {"batch": batch, "symbols": symbols, "shapes": shapes, "values": values}
    network = read_onnx(model, **given)
    fields = as_texts("settings", settings)
    found = pick_machine(machine, fields)
    if problem in (None, *nested("network")):
        found = found.in_network
    asked = _problems(found, problem, transfers)
    read = read_model(model, **given)
    able, why_not = _able(asked, network, found, objective, pins)
    refused, requantise = _checked(read, found, why_not, requantise)  # before a plan takes its time
    meaning = Meaning(read, found, rule=requantise, states=states or {})
    elements = meaning.check()
    folder, said = check_folder(out), ""
    for number, name in enumerate(able, 1):
        one = _Candidate.of(name, refused, meaning, pins, transfers)
        try:
            one.check(transfers)
            plan = solve(
                one.network, machine, problem=name, objective=objective, pins=one.pins or None, settings=fields,
                time_limit_s=(clock if number == len(able) else clock.share(4 / 3)).left, memory_limit=memory_limit,
                all_kinds=name in nested("layers"), progress=progress,
            )  # fmt: skip
            if plan.status not in ("OPTIMAL", "FEASIBLE"):
                reason = "; ".join(plan.conflicts[:3]) or "no plan"
                raise InputError(f"model {os.fspath(model)}: {plan.status}: {reason}")
            before = plan
            if is_shared(plan) and transfers != "steps" and not one.never:
                plan = addressed(plan, one.network, meaning, clock)
            files = files_of(plan, read, None, requantise, states, transfers)
        except InputError as error:
            if number == len(able):
                raise
            said = f"planned as problem {able[number]}, as no C is written of problem {name}: {error}"
            logger.info("%s", said)
        else:
            break
    _write(folder, files)
    notes = tuple(filter(None, (one.note, said, said_of(before, plan))))
    figures = _figures(plan, "ahead.c" in files, one.waits)
    return Compiled(plan, tuple(sorted(files)), *figures, elements.said(), notes)


@dataclass(frozen=True)
class _Candidate:
    """A problem that a model may be planned as, and what C of its plans demands."""

    network: Network
    """With the maps that lie in memory."""
    note: str
    """What that costs."""
    never: str
    """Why transfers cannot run ahead, as far as that is known before the search."""
    waits: bool
    """Whether each layer or group begins with its transfers, as far as that is known before the search."""
    pins: tuple[str, ...]
    """Those that are asked for; groups end in time, and steps wait where transfers cannot run ahead."""
    near: bool
    """Whether tiles go through memories in levels."""

    @classmethod
    def of(
        cls, problem: str, refused: Refusals, meaning: Meaning, pins: Sequence[str] | None, transfers: str | None
    ) -> _Candidate:  # fmt: skip
        """What C demands of a problem's plans."""
        network, note = in_dram(meaning.model.network, refused.in_dram(problem), meaning.machine)
        whole, asked = problem in nested("network"), tuple(pins or ())
        never = refused.ahead or (_several(meaning.machine) or _reshaped(network, meaning) if whole else "")
        waits = transfers == "steps" or bool(never)
        cuts = [f"cut={network.layers[t - 1].name}" for t in sorted(refused.cuts) if t and problem == "fusion"]
        if whole and waits and not any(pin.strip().startswith("prefetch") for pin in asked):
            cuts.append("prefetch=no")
        return cls(network, note, never, waits, (*asked, *cuts), meaning.machine.near is not None)

    def check(self, transfers: str | None) -> None:
        """Raise InputError if transfers shall run ahead, or have to, and cannot."""
        if self.never and (transfers == "ahead" or self.near):
            raise InputError(f"transfers ahead: {self.never}")


def _several(machine: Machine) -> str:
    """Why transfers cannot run ahead on a machine with several queues; nothing of others."""
    if machine.channels == "one":
        return ""
    return f"machine {machine.name}: C has one queue for transfers ahead, channels 'each' has one for every memory"


def _reshaped(network: Network, meaning: Meaning) -> str:
    """Why transfers cannot run ahead as layers see maps otherwise than their makers; nothing if they do not."""
    try:
        check_seen(OnChip(network, meaning.machine, stores(network), (), meaning))
    except InputError as error:
        return str(error)
    return ""


def _problems(machine: Machine, problem: str | None, transfers: str | None) -> tuple[str, ...]:
    """The problems that a model may be planned as, the first of them first; raises InputError for no problem of C."""
    if problem not in (None, *nested()):
        raise InputError(f"problem {problem}: C is written of {', '.join(nested())}")
    check_transfers(transfers)
    if machine.near is not None and transfers == "steps":
        raise no_steps()
    by_layer = nested("layers")
    single = machine.problem if machine.problem in by_layer else by_layer[0]
    whole = nested("network")[::-1] if machine.bank_count else ()
    every = (*whole, *(() if machine.near else (single,))) if problem is None else (problem,)
    found = tuple(name for name in every if transfers != "ahead" or name in nested("network"))
    if not found:
        raise not_ahead(every[0])
    return found


def _able(
    names: Sequence[str], network: Network, machine: Machine, objective: str | None, pins: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Those of some problems that can be asked; if there are none, all reasons why not."""
    why_not = {
        name: reasons_of(
            PROBLEMS[name], network, machine, objective=objective, pins=pins, all_kinds=name in nested("layers")
        )
        for name in names
    }
    able = [name for name in names if not why_not[name]]
    if not able:
        by_reason = dict[str, tuple[str, ...]]()
        for name, some in why_not.items():
            for reason in some if len(names) == 1 else some[:1]:
                by_reason[reason] = (*by_reason.get(reason, ()), name)
        return [], [f"problem {either(of)}: {why}" if of != tuple(names) else why for why, of in by_reason.items()]
    for name in names[: names.index(able[0])]:
        logger.info("model %s: not planned as problem %s: %s", network.name, name, "; ".join(why_not[name]))
    return able, []


def transfers_of(names: Sequence[str]) -> str:
    """Return what is said of the transfers of a program with these files."""
    if "ahead.c" in names:
        return "transfers run ahead of their steps, as the plan's queue says"
    return "each layer or group begins with its own transfers (--transfers ahead says why)"


def _figures(plan: Plan, ahead: bool, waits: bool) -> tuple[int, int, int, int]:
    """Of a plan what `Compiled` says: bytes, the most on chip at one time, ticks, multiply-accumulates."""
    if is_shared(plan):
        figures = [row.figures for row in rows_of(plan)]
        moved, ticks, macs = (sum(getattr(one, name) for one in figures) for name in ("moved", "ticks", "macs"))
        peak = max(one.occupancy_bytes + sum(one.on_chip.values()) for one in figures)
        if ahead or waits:
            ticks = (plan.measures or {})["time"]
        if ahead:
            peak = int(max(occupancy(carried(plan).laid.timeline)))
        return moved, peak, ticks, macs
    rows, measures = layer_rows(plan) if is_layers(plan) else (), plan.measures or {}
    peak = max(sum(row.occupancy_bytes.values()) for row in rows if row.occupancy_bytes)
    return measures["bytes"], peak, measures["time"], sum(row.workload.macs for row in rows)


def in_dram(network: Network, reasons: Mapping[int, str], machine: Machine) -> tuple[Network, str]:
    """Return a network whose maps with these numbers lie in DRAM, and what that may cost, in one line."""
    if not reasons:
        return network, ""
    found, size, read, names = stores(network), 0, 0, list[str]()
    for s in reasons:
        store, makers = found.stores[s], [found.layers[t] for t, _ in found.stores[s].parts]
        names.append(makers[0].name if makers else store.name)
        size += sum(one.b * one.g * one.m * one.r * one.c for one in makers) * machine.out_bytes
        read += (found.shared.count(s) - 1) * store.row_bytes(machine) if store.weights else 0
        for layer, of in zip(found.layers, found.reads, strict=True):
            read += sum(layer.input_elements(k) * machine.in_bytes for k, one in enumerate(of) if one == s)
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    said = f"in memory, as the host moves them or computes with them: maps of {shown}; {size:,} bytes written"
    note = f"{said}, {read:,} read (once each)"
    return network.model_copy(update={"in_dram": tuple(names)}), note
