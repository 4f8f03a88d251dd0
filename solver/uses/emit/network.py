"""The files of a program that runs a whole network as its plan says, and checks itself on integers.

Layers run in their order, each by its function; between them the host copies tensors into other layouts where a reader
needs that. The check runs the network again layer by layer by naive loop nests, and compares every result as far as it
was written, and what every layer moved with the plan.

`off_chip` says of the tensors off the chip in which memory each lies, and which steps of the program touch it.
`recorded` is an input of a model, and what another program makes of it, for the emitted one to compare with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hwmodels.fusion.replay.count import Count
from hwmodels.fusion.replay.strips import Walk
from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Counts
from hwmodels.schedule import FusedRun, LayerRun, Nest
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Input
from instances.network.stores import Stores, stores
from instances.onnx.model import JUDGE, OnnxModel, evaluated
from solver.uses.emit.arrange import Arranged, Copy, Host, Run
from solver.uses.emit.arrange_model import arranged
from solver.uses.emit.fixed_addresses import FixedAddresses
from solver.uses.emit.frame import Frame
from solver.uses.emit.groups import refuse as refuse_group
from solver.uses.emit.kinds import BYTES
from solver.uses.emit.mains import LAYER, MAIN, MODEL, makefile
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.nest import layer_file
from solver.uses.emit.offchip import BIASES, OffChip
from solver.uses.emit.onchip import AnyRun, OnChip
from solver.uses.emit.packed import Packed, with_bands
from solver.uses.emit.program import exact, memories, refuse, row, runtime
from solver.uses.emit.states import CALLS, declared, reset, taken
from solver.uses.emit.text import block, identifier, indented, literal, quoted
from solver.uses.emit.values import Value

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recorded:
    """Files of an input and its results, and who computed these (empty: nobody could)."""

    files: Mapping[str, bytes]
    judge: str


#: Computes the results of a model of its inputs.
_Judge = Callable[[Mapping[str, np.ndarray]], Sequence[np.ndarray]]


@dataclass(frozen=True)
class _Calls:
    """A model, the inputs of every call, and which of them are what the call before has made.

    What is constant is fed as well: the file has it as an input.
    """

    model: OnnxModel
    inputs: Sequence[Mapping[str, np.ndarray]]
    states: Mapping[str, str]

    def results(self, run: _Judge) -> list[np.ndarray]:
        """The results of all calls, one after the other."""
        found, state = list[np.ndarray](), dict[str, np.ndarray]()
        for feeds in self.inputs:
            made = run({**self.model.given, **feeds, **state})
            found += made
            state = {name: made[self.model.outputs.index(result)] for name, result in self.states.items()}
        return found


def recorded(model: OnnxModel, states: Mapping[str, str] | None = None) -> Recorded:
    """Return an input from a fixed seed and the outputs for it: of onnxruntime, else of ONNX's reference.

    Real inputs are small numbers, integers any of their kind. Where the program keeps `states`, of several calls.
    """
    rng, kept = np.random.default_rng(20), states or {}
    shapes = {tensor: model.network.operator(name).shape for tensor, name in model.inputs.items()}
    inputs = [
        {o: _drawn(rng, shape, np.dtype(model.element(o))) for o, shape in shapes.items() if not (call and o in kept)}
        for call in range(CALLS if kept else 1)
    ]
    files = {"input.bin": b"".join(value.tobytes() for feeds in inputs for value in feeds.values())}
    for judge in (_by_onnxruntime, _by_reference):
        name, made = judge(_Calls(model, inputs, kept))
        if made:
            return Recorded({**files, "expected.bin": b"".join(np.asarray(value).tobytes() for value in made)}, name)
    logger.warning("%s: the program has nothing to compare with", model.where)
    return Recorded(files, "")


def _by_onnxruntime(calls: _Calls) -> tuple[str, list[np.ndarray]]:
    model = calls.model
    try:
        import onnxruntime
    except ImportError:
        logger.warning("%s: onnxruntime is not installed", model.where)
        return "", []
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if model.network.map_type.endswith("int16"):
        # It has no kernels for integers of 16 bits, and what it fuses instead quantises to 8 bits on the way.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Sums of 8-bit products that do not saturate. Of signed maps both sides have to be read as integers: by default
    # their quantisation is left as operators on floats. Of unsigned ones the exact kernel is asked for.
    exact = "session.qdqisint8allowed" if model.network.map_type == "int8" else "session.x64quantprecision"
    options.add_session_config_entry(exact, "1")
    try:
        session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
        made = calls.results(lambda feeds: session.run(list(model.outputs), dict(feeds)))
    except Exception as error:  # noqa: BLE001 - onnxruntime raises many types
        logger.warning("%s: onnxruntime does not run it (%s)", model.where, _first_line(error))
        return "", []
    return f"onnxruntime {onnxruntime.__version__}", made


def _by_reference(calls: _Calls) -> tuple[str, list[np.ndarray]]:
    model = calls.model
    try:
        made = calls.results(lambda feeds: evaluated(model.path, feeds, model.outputs))
    except Exception as error:  # noqa: BLE001 - the evaluator raises many types
        logger.warning("%s: ONNX's reference does not run it (%s)", model.where, _first_line(error))
        return "", []
    return JUDGE, made


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:150]


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], element: np.dtype) -> np.ndarray:
    if element.kind in "iu":
        limits = np.iinfo(element)
        return rng.integers(limits.min, limits.max, shape, element, endpoint=True)
    return rng.normal(size=shape).astype(element)


def off_chip(arranged: Arranged, chip: OnChip, data: Collection[str]) -> OffChip:
    """Return where all tensors lie; `data` are the arrays that are filled before the network runs."""
    steps, machine = arranged.steps, chip.machine
    numbers = [k for k, step in enumerate(steps) if isinstance(step, Run)]
    runs = [step for step in steps if isinstance(step, Run)]
    found = OffChip(len(steps), [(numbers[run.first], numbers[run.last]) for run in chip.grouped.values()])
    homes = _homes(runs, chip)
    for name, (elements, size) in arranged.arrays.items():
        constant = name in data and (chip.meaning is not None or name.startswith("w_"))
        found.add(name, elements * size, homes.get(name, _home(machine, "IN")), constant=constant)
    for t, step in enumerate(runs):
        if step.bias and step.bias not in found.tensors:
            loaded = homes.get(step.weights.array if step.weights else "", _home(machine, "W"))
            size = arranged.biases[step.bias]
            found.add(step.bias, size, loaded if machine.bias_bytes else BIASES, constant=True)
        if (size := _sums(chip, t)) > 0:
            found.add(f"sums_{t:03}", size, homes.get(step.result.array, _home(machine, "OUT")))
            found.touch([f"sums_{t:03}"], numbers[t])
    for k, one in enumerate(steps):
        found.touch(_touched(found, one, chip, numbers.index(k) if k in numbers else 0), k)
    last = max(0, len(steps) - 1)
    found.touch(arranged.inputs, 0)
    found.touch(arranged.results, last)
    for at in (0, last):  # what is filled once is there all the time
        found.touch(data, at)
    return found


def _touched(found: OffChip, step: Copy | Host | Run, chip: OnChip, t: int) -> set[str]:
    """The tensors that a step reads or writes."""
    if isinstance(step, Copy):
        return {step.to.array, step.source.array}
    if isinstance(step, Host):
        return found.named_in(step.lines)
    values = (*step.inputs, step.weights, step.result)
    return {value.array for value in values if value} | found.named_in(chip.numbers(t).finished)


def _sums(chip: OnChip, t: int) -> int:
    """Bytes of partial sums that a layer by itself may move."""
    layer, run = chip.layer(t), chip.alone.get(t)
    if run is None or not Frame(layer, chip.machine, run.nest, chip.numbers(t)).sums:
        return 0
    return layer.b * layer.g * layer.m * layer.r * layer.c * chip.machine.psum_bytes


def _home(machine: Machine, operand: str) -> str:
    """The memory in which an operand lies if no plan says so."""
    return machine.homes[operand][0] if machine.homes.get(operand) else "dram"


def _homes(runs: Sequence[Run], chip: OnChip) -> dict[str, str]:
    """By array the memory that the plan says."""
    found: dict[str, str] = {}
    for t, step in enumerate(runs):
        run = chip.alone.get(t)
        mine = dict(run.nest.homes) if run is not None else {}
        for operand, values in (("OUT", [step.result]), ("IN", step.inputs), ("W", [step.weights])):
            for value in values:
                if value is not None:
                    found.setdefault(value.array, mine.get(operand, _home(chip.machine, operand)))
    return found


_HOST = ("certile_host.h", "certile_host.c")


@dataclass(frozen=True)
class NetworkPlanned:
    """A network, its machine, and what a plan says of every layer."""

    network: Network
    machine: Machine
    runs: Sequence[AnyRun]
    meaning: Meaning | None = None
    """What the network computes; without it, it is run on integers."""
    reads_zeros: bool = False
    """Whether inputs of zeros are read as any other map, as plans of single layers count them."""


def network_program(planned: NetworkPlanned) -> dict[str, str | bytes]:
    """Return the files; of a model also its weights, an input, and what onnxruntime makes of it if that is installed.

    Raises
    ------
    InputError
        If something cannot be written; names it.
    """
    return _Program(planned).files()


def alone(network: Network, nests: Sequence[Nest]) -> list[LayerRun]:
    """Return runs of layers that keep nothing on chip."""
    if len(nests) != len(network.layers):
        raise InputError(f"network {network.name} has {len(network.layers)} layers, the plan {len(nests)}")
    return [LayerRun(nest, {}, 0, ()) for nest in nests]


class _Program:
    def __init__(self, planned: NetworkPlanned) -> None:
        self.network, self.machine, self.runs = planned.network, planned.machine, planned.runs
        found = stores(self.network)
        if planned.reads_zeros:
            found = replace(found, stores=tuple(replace(store, zeros=False) for store in found.stores))
        self.found: Stores = found
        self.meaning = planned.meaning
        homes = [dict(run.nest.homes).get("W", "") if isinstance(run, LayerRun) else "" for run in self.runs]
        alone = all(isinstance(run, LayerRun) for run in self.runs)
        self.arranged: Arranged = arranged(self.network, self.machine, self.meaning, homes if alone else ())
        matrices = {t: step.weights for t, step in enumerate(self._runs)}
        self.chip = OnChip(self.network, self.machine, self.found, self.runs, self.meaning, matrices)
        self.taken = [self.chip.layer(t) for t in range(len(self.found.layers))]
        self.names = [f"layer_{t:03}_{identifier(layer.name)}" for t, layer in enumerate(self.found.layers)]

    # ---- files -----------------------------------------------------------------------------------------------------

    def files(self) -> dict[str, str | bytes]:
        """All files by name."""
        files: dict[str, str | bytes] = {**runtime(), **runtime(_HOST)}
        if self._uses_rows:
            files |= runtime(("certile_rows.h", "certile_rows.c"))
        includes = ["<math.h>", '"network.h"', '"certile_requantise.h"'] if self.meaning else []
        files |= runtime(("certile_requantise.h",)) if self.meaning else {}
        for t, run in self.chip.alone.items():
            refuse(self.taken[t], self.machine, run.nest)
            kept_in, kept_out = self.chip.kept(t)
            addresses = {
                b.name: self.chip.addresses.buffers.get(f"{t} {b.name}", b.address) for b in self.chip.tiles[t]
            }
            frame = Frame(
                self.taken[t], self.machine, run.nest, self.chip.numbers(t), kept_in=kept_in, kept_out=kept_out,
                kept_w=self.chip.kept_weights(t), placed=addresses,
            )  # fmt: skip
            files[f"{self.names[t]}.c"] = layer_file(frame, self.names[t], includes)
        if self.chip.grouped:
            strips = runtime(("certile_strips.h", "certile_strips.c"))
            files |= strips | {"certile_strips.h": with_bands(strips["certile_strips.h"], self.chip.grouped.values())}
        for begin, fused in self.chip.grouped.items():
            refuse_group(group := self.chip.group(fused))
            mine = {
                k.split(" ", 1)[1]: v for k, v in self.chip.addresses.buffers.items() if k.split(" ")[0] == str(begin)
            }
            writer, name = Packed if group.packed else FixedAddresses, self._group_name(fused)
            files[f"{name}.c"] = writer(group, name, mine, includes).text()
        files["memories.c"] = memories(self.machine)
        files["network.h"] = self._header()
        files["network.c"] = self._network()
        files["main.c"] = self._main()
        files["Makefile"] = makefile()
        if self.meaning is not None:
            files |= runtime(("certile_results.h", "certile_results.c"))
            files |= {"weights.bin": self._weights(), "weights.S": self.off_chip.assembly(), **self.recorded.files}
        return files

    @property
    def _uses_rows(self) -> bool:
        """Whether the host computes functions of several elements."""
        return any(isinstance(step, Host) and step.rows for step in self.arranged.steps)

    def _group_name(self, run: FusedRun) -> str:
        return f"group_{run.first:03}_to_{run.last:03}"

    def _weights(self) -> bytes:
        """The constants of a model: maps, weights and biases, as they lie off the chip."""
        assert self.meaning is not None
        values = {name: value.tobytes() for name, value in self.arranged.constants.items()}
        for step in self._runs:
            operator = self.network.operator(step.layer.name)
            if step.weights is not None and step.layer.weights == "constant":
                values[step.weights.array] = self.meaning.weights(operator, step.layer).tobytes()
            if step.layer.bias:
                values[step.bias] = self.meaning.bias(operator, step.layer).tobytes()
        return self.off_chip.image(values)

    @property
    def _runs(self) -> list[Run]:
        return [step for step in self.arranged.steps if isinstance(step, Run)]

    @cached_property
    def off_chip(self) -> OffChip:
        """Where tensors lie off the chip."""
        data = set(self._data(self._runs)) - set(self.arranged.biases)
        return off_chip(self.arranged, self.chip, data)

    def _header(self) -> str:
        lines = [
            f"/* {self.network.name} on {self.machine.name}: tensors off the chip, and the function that runs it. */",
            "#ifndef NETWORK_H", "#define NETWORK_H", "",
        ]  # fmt: skip
        lines += [*self.off_chip.declarations(), "", *self.off_chip.macros(self._tensors)]
        lines += [*declared(self.arranged.states), "",
                  "/* With CERTILE_CHECK: before and after a layer or a group. */", "int certile_instead(int k);",
                  "void certile_after(int k);", "void certile_after_group(int first, int last);", "",
                  "#endif", ""]  # fmt: skip
        return "\n".join(lines)

    @property
    def _tensors(self) -> dict[str, str]:
        """The model's inputs and results by array, as its file calls them."""
        if self.meaning is None:
            return {}
        names = {f"output_{k}": name for k, name in enumerate(self.meaning.model.outputs)}
        names |= dict(zip(self.arranged.inputs, self.meaning.model.inputs, strict=True))
        return {array: identifier_text(name) for array, name in names.items()}

    def _place(self, value: Value) -> str:
        size = self.arranged.arrays[value.array][1]
        return value.array if value.offset == 0 else f"{value.array} + {value.offset * size}"

    def _network(self) -> str:
        lines = [
            '#include "network.h"',
            "",
            '#include "certile_host.h"',
            '#include "certile_check.h"',
            '#include "certile_guard.h"',
        ]
        rows = ['#include "certile_rows.h"'] if self._uses_rows else []
        lines += [*rows, '#include "certile_tile.h"', "", "#include <math.h>", ""]
        lines += [f"extern unsigned char certile_{name}[{n}];" for name, n in self.machine.memories.items()]
        lines += [*self.off_chip.definitions(held=self.meaning is not None), ""]
        lines += [f"certile_function {self.names[t]};" for t in self.chip.alone]
        lines += [f"certile_group {self._group_name(run)};" for run in self.chip.grouped.values()]
        lines += ["", *LAYER.splitlines(), ""]
        body: list[str] = []
        t, waiting = 0, list[Copy | Host | Run]()
        for step in self.arranged.steps:
            group = next((run for run in self.chip.grouped.values() if run.first <= t <= run.last), None)
            if isinstance(step, Run):
                body += self._moves(t)
                t += 1
            if group is None or (not waiting and not isinstance(step, Run)):
                body += self._step(step, t - 1)
                continue
            waiting.append(step)
            if isinstance(step, Run) and t > group.last:
                body += self._group(group, waiting)
                waiting = []
        lines += reset(self.arranged.states, {name: one.bytes for name, one in self.off_chip.tensors.items()})
        return "\n".join([*lines, "void certile_network(void)", "{", *indented(body), "}", ""])

    def _moves(self, t: int) -> list[str]:
        """Move maps that lie elsewhere from a layer or a group on."""
        moves = self.chip.moves(t) if t in self.chip.begins else []
        said = ["/* Maps that stay on chip make room. */"] if moves else []
        return said + [f"memmove(certile_ocm + {to}, certile_ocm + {source}, {size});" for source, to, size in moves]

    def _step(self, step: Copy | Host | Run, t: int) -> list[str]:
        if isinstance(step, Run):
            return self._call(t, step)
        lines = self._copy(step) if isinstance(step, Copy) else [f"/* {identifier_text(step.why)} */", *step.lines]
        return [f'certile_open("{quoted(step.why)}");', *lines, "certile_shut();"]

    def _group(self, run: FusedRun, steps: Sequence[Copy | Host | Run]) -> list[str]:
        """A group, and what the host does between its layers: before it for what comes from outside, and after it."""
        layers = {run.first + k: step for k, step in enumerate(s for s in steps if isinstance(s, Run))}
        others = [line for step in steps if not isinstance(step, Run) for line in self._step(step, 0)]
        one_by_one, t = list[str](), run.first
        for step in steps:
            one_by_one += self._step(step, t)
            t += isinstance(step, Run)
        inputs = [self._outside(run, k, layers) for k in range(len(run.streams))]
        weights = [self._place(s.weights) if s.weights else "NULL" for s in layers.values()]
        biases = [s.bias or "NULL" for s in layers.values()]
        arrays = {"in": inputs, "out": [self._place(s.result) for s in layers.values()], "w": weights, "bias": biases}
        body = list(others)
        body += [f"unsigned char *const {name}[] = {{{', '.join(places)}}};" for name, places in arrays.items()]
        body += [f"{self._group_name(run)}(in, out, w, bias);", *others, f"GROUP_DONE({run.first}, {run.last})"]
        return ["#ifdef CERTILE_CHECK", "if (certile_instead(-1)) {", *indented(one_by_one), "} else", "#endif",
                *block("", body)]  # fmt: skip

    def _outside(self, run: FusedRun, k: int, layers: Mapping[int, Run]) -> str:
        """The array that a map from outside is loaded from."""
        if not run.streams[k].outside:
            return "NULL"
        t, _ = self.chip.reference(run, k)
        return self._place(layers[t].inputs[self.found.reads[t].index(run.streams[k].store)])

    def _copy(self, step: Copy) -> list[str]:
        size = self.arranged.arrays[step.to.array][1]
        axes = [k for k, extent in enumerate(step.to.shape) if extent > 1]

        def numbers(values: Sequence[int]) -> str:
            return "(const long[]){" + (", ".join(str(values[k]) for k in axes) or "0") + "}"

        return [
            f"/* {identifier_text(step.why)} */",
            f"certile_copy({self._place(step.to)}, {numbers(step.to.pitch)}, {self._place(step.source)}, "
            f"{numbers(step.source.pitch)},",
            f"             {numbers(step.to.shape)}, {len(axes)}, {size});",
        ]

    def _call(self, t: int, step: Run) -> list[str]:
        inputs = ", ".join(self._place(value) for value in step.inputs)
        weights = self._place(step.weights) if step.weights else "NULL"
        bias = step.bias or "NULL"
        sums = f"sums_{t:03}" if f"sums_{t:03}" in self.off_chip.tensors else "NULL"
        text = f"{self.names[t]}(in, {weights}, {bias}, {self._place(step.result)}, {sums})"
        if t not in self.chip.alone:
            return [f"LAYER({t}, (void)0);"]
        return block("", [f"unsigned char *const in[] = {{{inputs}}};", f"LAYER({t}, {text});"])

    # ---- the check -------------------------------------------------------------------------------------------------

    def _main(self) -> str:
        runs = [step for step in self.arranged.steps if isinstance(step, Run)]
        rows, tensors = [], []
        for t, (step, name) in enumerate(zip(runs, self.names, strict=True)):
            run = self.chip.alone.get(t)
            counts: Mapping[str, Counts] = {}
            if run is not None:
                layer, nest = self.chip.counted(t)
                counts = replay(layer, exact(self.machine), nest, execute=False).outcome.by_operand
            function = name if run is not None else "NULL"
            rows.append(row(name, function, step.layer, self.machine, counts, self.taken[t].resident_out))
            inputs = ", ".join(self._place(value) for value in step.inputs)
            weights = self._place(step.weights) if step.weights else "NULL"
            bias = step.bias or "NULL"
            tensors.append(f"    {{{{{inputs}}}, {weights}, {bias}, {self._place(step.result)}}},")
        sizes = {name: one.bytes for name, one in self.off_chip.tensors.items()}
        operators = self.network.operators
        zeros = {self.arranged.values[o.name].array for o in operators if isinstance(o, Input) and o.zeros}
        data = [f"    certile_fill({name}, {sizes[name]});" for name in self._data(runs) if name not in zeros]
        if self.meaning is not None:
            data = [f"    take(weights, {name}, {size});" for name, size in self.off_chip.constants().items()]
        results = [f"    {{{step.result.array}, {sizes[step.result.array]}}}," for step in runs]
        guard = "\n".join(
            f'    certile_guard({name}, CERTILE_ROOM({size}), "{name}");'
            for name, size in self.off_chip.guarded.items()
        )
        if self.meaning is not None:
            made, given = self.arranged.results, self.arranged.inputs
            return MODEL.format(
                names="\n".join(f"certile_function {self.names[t]};" for t in self.chip.alone), rows="\n".join(rows),
                groups=self._groups(), guard=guard,
                data="\n".join(data), number=len(runs),
                inputs=taken(given, sizes, self.arranged.states),
                results="\n".join(map(self._result, range(len(made)))), judge=self.recorded.judge,
                tolerance=literal(self.meaning.elements.tolerance),
            )  # fmt: skip
        return MAIN.format(
            names="\n".join(f"certile_function {self.names[t]};" for t in self.chip.alone), rows="\n".join(rows),
            groups=self._groups(), guard=guard,
            tensors="\n".join(tensors), data="\n".join(data), results="\n".join(results),
            number=len(runs),
        )  # fmt: skip

    @cached_property
    def recorded(self) -> Recorded:
        """An input of the model, and its results as another program computes them."""
        return recorded(self.meaning.model, self.meaning.states) if self.meaning is not None else Recorded({}, "")

    def _result(self, k: int) -> str:
        """A row of the table of results."""
        assert self.meaning is not None
        name, (tensor, maker) = self.arranged.results[k], list(self.meaning.model.results.items())[k]
        kind, shape = self.meaning.result_kinds[k], self.network.operator(maker).shape
        step = literal(self.arranged.steps_of.get(name, 0))
        sizes = ", ".join(map(str, shape))
        texts = f'"{quoted(tensor)}", "{quoted(self._look(maker))}"'
        what = f"{texts}, {name}, {BYTES[kind]}, certile_read_{kind}, {step}, {len(shape)}, {{{sizes}}}"
        return f"    {{{what}, 0, 0, 0, 0, 0, 0, 0}},"

    def _look(self, maker: str) -> str:
        """What makes a result: the last layer before it, and the host behind that."""
        number = {layer.name: t for t, layer in enumerate(self.found.layers)}
        name = maker
        while name not in number and self.network.operator(name).inputs:
            name = self.network.operator(name).inputs[0]
        if name not in number:
            return "network.c: no layer makes it"
        t = number[name]
        group = next((run for run in self.chip.grouped.values() if run.first <= t <= run.last), None)
        return f"layer {name} ({self._group_name(group) if group else self.names[t]}.c), then at what is earlier"

    def _groups(self) -> str:
        """Of every group the bytes that its plan moves; a last row ends the table."""
        rows = []
        for run in self.chip.grouped.values():
            moved = Count(self.found, self.machine, Walk(self.found, run)).run_all().operand_bytes
            rows.append(f"    {{{run.first}, {{{moved['IN']}, {moved['W']}, {moved['OUT']}, 0}}}},")
        return "\n".join([*rows, "    {-1, {0, 0, 0, 0}},"])

    def _data(self, runs: Sequence[Run]) -> list[str]:
        """Arrays that are filled: what is data, weights and biases layer by layer."""
        weights = {step.weights.array for step in runs if step.weights and step.layer.weights == "constant"}
        names = [name for name in self.arranged.data if name not in weights]
        for step in runs:
            if step.weights and step.layer.weights == "constant":
                names.append(step.weights.array)
            names += [step.bias] if step.bias else []
        return list(dict.fromkeys(names))


def identifier_text(text: str) -> str:
    """Return a text that may stand in a comment."""
    return (
        "".join(c if c.isascii() and c.isprintable() else "?" for c in text).replace("*/", "* /").replace("/*", "/ *")
    )
