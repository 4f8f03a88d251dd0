"""From a plan to a folder of C files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from instances.errors import InputError, OutputError
from instances.network.stores import stores
from instances.onnx.model import OnnxModel, read_model
from instances.problems import either, nested
from solver.plan.plan import Plan
from solver.problems.joint import is_shared
from solver.problems.layers import is_layers
from solver.uses.emit.groups import no_zeros
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.network import NetworkPlanned, alone
from solver.uses.emit.program import Planned, single_layers


def emit_c(
    plan: Plan, out: str | os.PathLike[str], model: str | os.PathLike[str] | OnnxModel | None = None, *,
    memory_bytes: int | None = None, batch: int | None = None, symbols: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None, requantise: str | None = None,
    states: Mapping[str, str] | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Write C11 that carries a plan out, and checks itself.

    Parameters
    ----------
    plan : Plan
        Of problem tiling, slicing, joint or fusion, with a schedule for every layer.
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
    files = files_of(plan, read, memory_bytes, requantise, states)
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


def files_of(
    plan: Plan, model: OnnxModel | None = None, memory_bytes: int | None = None, requantise: str | None = None,
    states: Mapping[str, str] | None = None,
) -> Mapping[str, str | bytes]:  # fmt: skip
    """Return the text of every file by its name; raises InputError as `emit_c`."""
    meaning = None if model is None else Meaning(model, plan.machine_data, rule=requantise, states=states or {})
    if is_shared(plan):
        if plan.schedule is None:
            raise InputError(f"plan of {plan.network}: no schedule")
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
        return NetworkPlanned(network, machine, plan.schedule, meaning).files()
    if memory_bytes is not None:
        raise InputError(f"memory_bytes: for plans of problems {either(nested('network'))}, not of {plan.problem}")
    if not is_layers(plan):
        said = f"C is written of problems {either(nested())}, not of {plan.problem}"
        raise InputError(f"plan of {plan.network}: {said}")
    missing = [layer.layer for layer in plan.layers if layer.schedule is None]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise InputError(f"plan of {plan.network}: no schedule for {shown}")
    machine, made = plan.machine_data, [(layer.workload, layer.schedule) for layer in plan.layers]
    planned = [Planned(layer, machine, nest) for layer, nest in made if nest is not None]
    if meaning is None:
        return dict(single_layers(planned))
    network = meaning.model.network
    if network.layers != tuple(one.layer for one in planned):
        said = "plan all of them, with --all-kinds"
        raise InputError(f"{meaning.model.where}: its layers are not those of the plan of {plan.network}: {said}")
    nests = alone(network, [one.nest for one in planned])
    return NetworkPlanned(network, plan.machine_data, nests, meaning, True).files()


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
