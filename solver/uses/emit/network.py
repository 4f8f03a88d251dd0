"""The files of a program that runs a whole network as its plan says, and checks itself.

Layers run in their order, each by its function; between them the host copies tensors into other layouts where a reader
needs that. Without a model the check runs the network again layer by layer by naive loop nests on integers, and
compares every result as far as it was written; what every layer moved is compared with the plan in any case.

`recorded` is an input of a model, and what another program makes of it, for the emitted one to compare with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata

import numpy as np

from hwmodels.fusion.replay.count import Count
from hwmodels.fusion.replay.strips import Walk
from hwmodels.outcome import Counts
from hwmodels.schedule import FusedRun, LayerRun, Nest
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Input
from instances.network.stores import Stores, stores
from instances.onnx.file import is_tflite, open_model
from instances.onnx.model import JUDGE, OnnxModel, evaluated
from solver.uses.emit.arrange import Arranged, Copy, Host, Run
from solver.uses.emit.arrange_model import arranged
from solver.uses.emit.fixed_addresses import FixedAddresses
from solver.uses.emit.frame import Frame
from solver.uses.emit.groups import refuse as refuse_group
from solver.uses.emit.kinds import BYTES
from solver.uses.emit.mains import LAYER, MAIN, MAKEFILE, MODEL
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.nest import layer_file
from solver.uses.emit.offchip import BIASES, OffChip
from solver.uses.emit.onchip import AnyRun, OnChip
from solver.uses.emit.packed import Packed, with_bands
from solver.uses.emit.program import Planned, layers_table, memories, planned_counts, refuse, row, runtime
from solver.uses.emit.states import CALLS, declared, reset, taken
from solver.uses.emit.text import block, identifier, indented, literal, longs, plain, quoted

logger = logging.getLogger(__name__)

#: Computes the results of a model of its inputs.
_Judge = Callable[[Mapping[str, np.ndarray]], Sequence[np.ndarray]]


@dataclass(frozen=True)
class Recorded:
    """Files of an input and its results, and who computed these (empty: nobody could)."""

    files: Mapping[str, bytes]
    judge: str


def recorded(model: OnnxModel, states: Mapping[str, str] | None = None) -> Recorded:
    """Return an input from a fixed seed and the outputs for it: of onnxruntime, else of ONNX's reference.

    Of a TFLite file the outputs are those of its interpreter first. Real inputs are small numbers, integers any of
    their kind. Where the program keeps `states`, of several calls. All are laid out as the file has them.
    """
    rng, kept, file = np.random.default_rng(20), states or {}, model.file
    shapes = {o: file.shape(o, model.network.operator(name).shape) for o, name in model.inputs.items()}
    inputs = [
        {o: _drawn(rng, shape, np.dtype(model.element(o))) for o, shape in shapes.items() if not (call and o in kept)}
        for call in range(CALLS if kept else 1)
    ]
    inputs[0] |= {o: begin for o, begin in file.begins.items() if o in kept and o in shapes}

    def of_all_calls(run: _Judge) -> list[np.ndarray]:
        found, state = list[np.ndarray](), dict[str, np.ndarray]()
        for feeds in inputs:  # what is constant is fed as well: the file has it as an input
            made = run({**model.given, **feeds, **state})
            found += made
            state = {name: made[model.outputs.index(result)] for name, result in kept.items()}
        return found

    files = {"input.bin": b"".join(value.tobytes() for feeds in inputs for value in feeds.values())}
    judges = (_by_onnxruntime, "onnxruntime"), (_by_reference, "ONNX's reference")
    for judge, name in ((_by_litert, "ai-edge-litert"), *judges) if is_tflite(model.path) else judges:
        try:
            said, run = judge(model)
            made = of_all_calls(run)
        except ImportError:
            logger.warning("%s: %s is not installed", model.where, name)
        except Exception as error:  # noqa: BLE001 - onnxruntime and the evaluator raise many types
            shown = (str(error).splitlines() or [type(error).__name__])[0][:150]
            logger.warning("%s: %s does not run it (%s)", model.where, name, shown)
        else:
            if made:
                return Recorded({**files, "expected.bin": b"".join(np.asarray(v).tobytes() for v in made)}, said)
    logger.warning("%s: the program has nothing to compare with", model.where)
    return Recorded(files, "")


def _by_onnxruntime(model: OnnxModel) -> tuple[str, _Judge]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if model.network.map_type.endswith("int16"):
        # It has no kernels for integers of 16 bits, and what it fuses instead quantises to 8 bits on the way.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Sums of 8-bit products that do not saturate. Of signed maps both sides have to be read as integers: by default
    # their quantisation is left as operators on floats. Of unsigned ones the exact kernel is asked for.
    exact = "session.qdqisint8allowed" if model.network.map_type == "int8" else "session.x64quantprecision"
    options.add_session_config_entry(exact, "1")
    held = (
        str(model.path) if not is_tflite(model.path) else open_model(model.path, model.where).model.SerializeToString()
    )
    session = onnxruntime.InferenceSession(held, options, providers=["CPUExecutionProvider"])
    run = _of_model(model, lambda feeds: session.run(list(model.outputs), dict(feeds)))
    return f"onnxruntime {onnxruntime.__version__}", run


def _by_reference(model: OnnxModel) -> tuple[str, _Judge]:
    held = open_model(model.path, model.where, weights=True).model
    return JUDGE, _of_model(model, lambda feeds: evaluated(held, feeds, model.outputs))


def _of_model(model: OnnxModel, run: _Judge) -> _Judge:
    """The same with inputs and results as the file has them."""
    file = model.file

    def ran(feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        made = run({name: file.to_model(name, value) for name, value in feeds.items()})
        return [file.to_file(name, np.asarray(value)) for name, value in zip(model.outputs, made, strict=True)]

    return ran


def _by_litert(model: OnnxModel) -> tuple[str, _Judge]:
    """The interpreter of TFLite, by its reference kernels; what it keeps between calls it keeps itself."""
    from ai_edge_litert import interpreter as litert

    file = model.file
    kernels, keeps = litert.OpResolverType, bool(file.kept)

    def made(kind: object) -> litert.Interpreter:
        return litert.Interpreter(
            str(model.path), experimental_op_resolver_type=kind, experimental_preserve_all_tensors=keeps
        )  # fmt: skip

    try:
        runs = made(kernels.BUILTIN_REF)
        runs.allocate_tensors()
    except ValueError:  # an operator has no reference kernel; others round as the host does best
        runs = made(kernels.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        runs.allocate_tensors()
    asked, given = runs.get_input_details(), [name for name in model.inputs if name not in file.states]
    results = [one["index"] for one in runs.get_output_details()]
    if len(asked) != len(given):
        raise ValueError(f"it has {len(asked)} inputs, {len(given)} are read")

    def run(feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        for one, name in zip(asked, given, strict=True):
            runs.set_tensor(one["index"], feeds[name])
        runs.invoke()
        left = iter(results)
        return [runs.get_tensor(file.kept[name] if name in file.kept else next(left)) for name in model.outputs]

    return f"TFLite ({metadata.version('ai-edge-litert')})", run


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], element: np.dtype) -> np.ndarray:
    if element.kind in "iu":
        limits = np.iinfo(element)
        return rng.integers(limits.min, limits.max, shape, element, endpoint=True)
    return rng.normal(size=shape).astype(element)


def alone(network: Network, nests: Sequence[Nest]) -> list[LayerRun]:
    """Return runs of layers that keep nothing on chip."""
    if len(nests) != len(network.layers):
        raise InputError(f"network {network.name} has {len(network.layers)} layers, the plan {len(nests)}")
    return [LayerRun(nest, {}, 0, ()) for nest in nests]


def _group_name(run: FusedRun) -> str:
    return f"group_{run.first:03}_to_{run.last:03}"


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

    @cached_property
    def found(self) -> Stores:
        """The maps of the network, and its layers."""
        found = stores(self.network)
        if not self.reads_zeros:
            return found
        return replace(found, stores=tuple(replace(store, zeros=False) for store in found.stores))

    @cached_property
    def arranged(self) -> Arranged:
        """Its arrays, and what happens in turn."""
        alone = [run for run in self.runs if isinstance(run, LayerRun)]
        homes = [dict(run.nest.homes).get("W", "") for run in alone] if len(alone) == len(self.runs) else ()
        return arranged(self.network, self.machine, self.meaning, homes)

    @cached_property
    def steps(self) -> list[Run]:
        """What happens in turn, layers alone."""
        return [step for step in self.arranged.steps if isinstance(step, Run)]

    @cached_property
    def chip(self) -> OnChip:
        """What lies on chip."""
        matrices = {t: step.weights for t, step in enumerate(self.steps)}
        return OnChip(self.network, self.machine, self.found, self.runs, self.meaning, matrices)

    @cached_property
    def names(self) -> list[str]:
        """The functions of the layers."""
        return [f"layer_{t:03}_{identifier(layer.name)}" for t, layer in enumerate(self.found.layers)]

    @cached_property
    def recorded(self) -> Recorded:
        """An input of the model, and its results as another program computes them."""
        return recorded(self.meaning.model, self.meaning.states) if self.meaning is not None else Recorded({}, "")

    # ---- files -----------------------------------------------------------------------------------------------------

    def files(self) -> dict[str, str | bytes]:
        """Return the files by name; of a model also weights, an input, and what another program makes of it.

        Raises InputError if something cannot be written; names it.
        """
        files = dict[str, str | bytes](runtime())
        files |= runtime("certile_host.h", "certile_host.c")
        if self._uses_rows:
            files |= runtime("certile_rows.h", "certile_rows.c")
        includes = ["<math.h>", '"network.h"', '"certile_requantise.h"'] if self.meaning else []
        files |= runtime("certile_requantise.h") if self.meaning else {}
        files |= self._computed(includes)
        files["memories.c"] = memories(self.machine)
        files["network.h"] = self._header()
        files["network.c"] = self._network()
        files["main.c"] = self._main()
        files["Makefile"] = MAKEFILE
        if self.meaning is not None:
            files |= runtime("certile_results.h", "certile_results.c")
            files |= {"weights.bin": self._weights(), "weights.S": self.off_chip.assembly(), **self.recorded.files}
        return files

    def _computed(self, includes: Sequence[str]) -> dict[str, str]:
        """The files of layers and groups."""
        chip, files = self.chip, dict[str, str]()
        layers = [chip.layer(t) for t in range(len(self.found.layers))]
        for t, run in self.called.items():
            refuse(layers[t], self.machine, run.nest)
            kept_in, kept_out = chip.kept(t)
            addresses = {b.name: chip.addresses.buffers.get(f"{t} {b.name}", b.address) for b in chip.tiles[t]}
            frame = Frame(
                layers[t], self.machine, run.nest, chip.numbers(t), kept_in=kept_in, kept_out=kept_out,
                kept_w=chip.kept_weights(t), placed=addresses,
            )  # fmt: skip
            files[f"{self.names[t]}.c"] = layer_file(frame, self.names[t], includes)
        if chip.grouped:
            strips = runtime("certile_strips.h", "certile_strips.c")
            files |= strips | {"certile_strips.h": with_bands(strips["certile_strips.h"], chip.grouped.values())}
        for begin, fused in chip.grouped.items():
            refuse_group(group := chip.group(fused))
            mine = [(name, at) for name, at in chip.addresses.buffers.items() if name.startswith(f"{begin} ")]
            addresses = {name.removeprefix(f"{begin} "): at for name, at in mine}
            writer, name = Packed if group.packed else FixedAddresses, _group_name(fused)
            files[f"{name}.c"] = writer(group, name, addresses, includes).text()
        return files

    @property
    def called(self) -> Mapping[int, LayerRun]:
        """Layers that run by a function of their own, which a check may call."""
        return self.chip.alone

    @property
    def _uses_rows(self) -> bool:
        """Whether the host computes functions of several elements."""
        return any(isinstance(step, Host) and step.rows for step in self.arranged.steps)

    def _weights(self) -> bytes:
        """The constants of a model: maps, weights and biases, as they lie off the chip."""
        assert self.meaning is not None
        values = {name: value.tobytes() for name, value in self.arranged.constants.items()}
        for step in self.steps:
            operator, layer = self.network.operator(step.layer.name), step.layer
            if step.weights is not None and layer.weights == "constant":
                values[step.weights.array] = self.meaning.trained(operator, layer).weights.tobytes()
            if layer.bias:
                values[step.bias] = self.meaning.trained(operator, layer).bias.tobytes()
        return self.off_chip.image(values)

    # ---- off the chip ----------------------------------------------------------------------------------------------

    @cached_property
    def data(self) -> list[str]:
        """Arrays that are filled: what is data, weights and biases layer by layer."""
        constant = [step.weights.array for step in self.steps if step.weights and step.layer.weights == "constant"]
        names = [name for name in self.arranged.data if name not in constant]
        for step in self.steps:
            names += [step.weights.array] if step.weights and step.layer.weights == "constant" else []
            names += [step.bias] if step.bias else []
        return list(dict.fromkeys(names))

    @cached_property
    def off_chip(self) -> OffChip:
        """Where tensors lie off the chip."""
        made, chip, steps = self.arranged, self.chip, self.arranged.steps
        numbers = [k for k, step in enumerate(steps) if isinstance(step, Run)]
        found = OffChip(len(steps), [(numbers[run.first], numbers[run.last]) for run in chip.grouped.values()])
        homes, filled = self._homes(), set(self.data) - set(made.biases)
        for name, (elements, size) in made.arrays.items():
            constant = name in filled and (self.meaning is not None or name.startswith("w_"))
            found.add(name, elements * size, homes.get(name, self._home("IN")), constant=constant)
        for t, step in enumerate(self.steps):
            if step.bias and step.bias not in found.tensors:
                loaded = homes.get(step.weights.array if step.weights else "", self._home("W"))
                home = loaded if self.machine.bias_bytes else BIASES
                found.add(step.bias, made.biases[step.bias], home, constant=True)
            if (size := self._sums(t)) > 0:
                found.add(f"sums_{t:03}", size, homes.get(step.result.array, self._home("OUT")))
                found.touch([f"sums_{t:03}"], numbers[t])
        for k, one in enumerate(steps):
            found.touch(self._touched(found, one, numbers.index(k) if k in numbers else 0), k)
        last = max(0, len(steps) - 1)
        found.touch(made.inputs, 0)
        found.touch(made.results, last)
        for at in (0, last):  # what is filled once is there all the time
            found.touch(filled, at)
        return found

    def _touched(self, found: OffChip, step: Copy | Host | Run, t: int) -> set[str]:
        """The tensors that a step reads or writes."""
        if isinstance(step, Copy):
            return {step.to.array, step.source.array}
        if isinstance(step, Host):
            return found.named_in(step.lines)
        values = (*step.inputs, step.weights, step.result)
        return {value.array for value in values if value} | found.named_in(self.chip.numbers(t).finished)

    def _sums(self, t: int) -> int:
        """Bytes of partial sums that a layer by itself may move."""
        layer, run = self.chip.layer(t), self.chip.alone.get(t)
        if run is None or not Frame(layer, self.machine, run.nest, self.chip.numbers(t)).sums:
            return 0
        return layer.b * layer.g * layer.m * layer.r * layer.c * self.machine.psum_bytes

    def _home(self, operand: str) -> str:
        """The memory in which an operand lies if no plan says so."""
        return self.machine.homes[operand][0] if self.machine.homes.get(operand) else "dram"

    def _homes(self) -> dict[str, str]:
        """By array the memory that the plan says."""
        found: dict[str, str] = {}
        for t, step in enumerate(self.steps):
            mine = dict(self.chip.alone[t].nest.homes) if t in self.chip.alone else {}
            for operand, values in (("OUT", [step.result]), ("IN", step.inputs), ("W", [step.weights])):
                for value in values:
                    if value is not None:
                        found.setdefault(value.array, mine.get(operand, self._home(operand)))
        return found

    # ---- network.h and network.c -----------------------------------------------------------------------------------

    def _header(self) -> str:
        called = {}
        if self.meaning is not None:  # the model's inputs and results by array, as its file calls them
            called = {f"output_{k}": name for k, name in enumerate(self.meaning.model.outputs)}
            called |= dict(zip(self.arranged.inputs, self.meaning.model.inputs, strict=True))
        return "\n".join([
            f"/* {self.network.name} on {self.machine.name}: tensors off the chip, and the function that runs it. */",
            "#ifndef NETWORK_H", "#define NETWORK_H", "", *self.off_chip.declarations(), "",
            *self.off_chip.macros({array: plain(name) for array, name in called.items()}),
            *declared(self.arranged.states, self.arranged.begins), "",
            "/* With CERTILE_CHECK: before and after a layer or a group. */", "int certile_instead(int k);",
            "void certile_after(int k);", "void certile_after_group(int first, int last);", "", "#endif", "",
        ])  # fmt: skip

    def _network(self) -> str:
        used = ["host", "check", "guard", *(["rows"] if self._uses_rows else []), "tile"]
        used += ["requantise"] if self.meaning is not None else []
        lines = ['#include "network.h"', "", *(f'#include "certile_{name}.h"' for name in used)]
        lines += ["", "#include <math.h>", ""]
        lines += [f"extern unsigned char certile_{name}[{n}];" for name, n in self.machine.memories.items()]
        lines += [*self.off_chip.definitions(held=self.meaning is not None), ""]
        lines += [*self._functions(), "", *LAYER.splitlines(), ""]
        sizes = {name: one.bytes for name, one in self.off_chip.tensors.items()}
        lines += reset(self.arranged.states, sizes, self.arranged.begins)
        return "\n".join([*lines, "void certile_network(void)", "{", *indented(self._body()), "}", ""])

    def _functions(self) -> list[str]:
        """Declarations of what the network calls."""
        alone = [f"certile_function {self.names[t]};" for t in self.called]
        return alone + [f"certile_group {_group_name(run)};" for run in self.chip.grouped.values()]

    def _body(self) -> list[str]:
        """What happens in turn."""
        body: list[str] = []
        t, waiting = 0, list[Copy | Host | Run]()
        for step in self.arranged.steps:
            group = self.chip.run_of(t)
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
        return body

    def _moves(self, t: int) -> list[str]:
        """Move maps that lie elsewhere from a layer or a group on."""
        moves = self.chip.moves(t) if t in self.chip.begins else []
        said = ["/* Maps that stay on chip make room. */"] if moves else []
        return said + [f"memmove(certile_ocm + {to}, certile_ocm + {source}, {size});" for source, to, size in moves]

    def _step(self, step: Copy | Host | Run, t: int) -> list[str]:
        if isinstance(step, Run):
            return self._call(t, step)
        lines = self._copy(step) if isinstance(step, Copy) else step.lines
        return [f'certile_open("{quoted(step.why)}");', f"/* {plain(step.why)} */", *lines, "certile_shut();"]

    def _copy(self, step: Copy) -> list[str]:
        to, source, size = step.to, step.source, self.arranged.arrays[step.to.array][1]
        axes = [k for k, extent in enumerate(to.shape) if extent > 1]
        pitches = [longs([value.pitch[k] for k in axes] or [0]) for value in (to, source)]
        return [
            f"certile_copy({self.arranged.place(to)}, {pitches[0]}, {self.arranged.place(source)}, {pitches[1]},",
            f"             {longs([to.shape[k] for k in axes] or [0])}, {len(axes)}, {size});",
        ]

    def _texts(self, step: Run) -> tuple[str, str, str, str]:
        """The inputs, weights, biases and result of a layer as C."""
        place = self.arranged.place
        weights = place(step.weights) if step.weights else "NULL"
        return ", ".join(map(place, step.inputs)), weights, step.bias or "NULL", place(step.result)

    def _call(self, t: int, step: Run) -> list[str]:
        if t not in self.called:
            return [f"LAYER({t}, (void)0);"]
        inputs, *others = self._texts(step)
        sums = f"sums_{t:03}" if f"sums_{t:03}" in self.off_chip.tensors else "NULL"
        text = f"{self.names[t]}(in, {', '.join(others)}, {sums})"
        return block("", [f"unsigned char *const in[] = {{{inputs}}};", f"LAYER({t}, {text});"])

    def _group(self, run: FusedRun, steps: Sequence[Copy | Host | Run]) -> list[str]:
        """A group, and what the host does between its layers: before it for what comes from outside, and after it."""
        layers = {run.first + k: step for k, step in enumerate(s for s in steps if isinstance(s, Run))}
        others = [line for step in steps if not isinstance(step, Run) for line in self._step(step, 0)]
        inputs = [self._outside(run, k, layers) for k in range(len(run.streams))]
        _, weights, biases, results = zip(*map(self._texts, layers.values()), strict=True)
        body = list(others)
        for name, places in (("in", inputs), ("out", results), ("w", weights), ("bias", biases)):
            body.append(f"unsigned char *const {name}[] = {{{', '.join(places)}}};")
        body += [f"{_group_name(run)}(in, out, w, bias);", *others, f"GROUP_DONE({run.first}, {run.last})"]
        return self._or_one_by_one(steps, run.first, body)

    def _or_one_by_one(self, steps: Sequence[Copy | Host | Run], t: int, body: list[str]) -> list[str]:
        """What steps from layer t on do together; where a check runs layers by functions of its own, one by one."""
        apart = list[str]()
        for step in steps:
            apart += self._step(step, t)
            t += isinstance(step, Run)
        return ["#ifdef CERTILE_CHECK", "if (certile_instead(-1)) {", *indented(apart), "} else", "#endif",
                *block("", body)]  # fmt: skip

    def _outside(self, run: FusedRun, k: int, layers: Mapping[int, Run]) -> str:
        """The array that a map from outside is loaded from."""
        if not run.streams[k].outside:
            return "NULL"
        t, _ = self.chip.reference(run, k)
        return self.arranged.place(layers[t].inputs[self.found.reads[t].index(run.streams[k].store)])

    # ---- the check -------------------------------------------------------------------------------------------------

    def _main(self) -> str:
        rows, tensors = [], []
        for t, (step, name) in enumerate(zip(self.steps, self.names, strict=True)):
            counts: Mapping[str, Counts] = {}
            if t in self.called:
                layer, nest = self.chip.counted(t)
                counts = planned_counts(Planned(layer, self.machine, nest))
            function = name if t in self.called else "NULL"
            rows.append(row(name, function, step.layer, self.machine, counts, self.chip.layer(t).resident_out))
            inputs, *others = self._texts(step)
            tensors.append(f"    {{{{{inputs}}}, {', '.join(others)}}},")
        sizes = {name: one.bytes for name, one in self.off_chip.tensors.items()}
        guarded, functions = self.off_chip.guarded.items(), [self.names[t] for t in self.called]
        common = {
            "layers": "\n".join(layers_table(functions, rows)),
            "groups": self._groups(),
            "guard": "\n".join(f'    certile_guard({name}, CERTILE_ROOM({n}), "{name}");' for name, n in guarded),
            "number": len(self.steps),
            "channels": '#include "certile_channels.h"\n' if self._channels[1] else "",
            "compared": self._channels[1],
        }
        if self.meaning is not None:
            data = [f"    take(weights, {name}, {size});" for name, size in self.off_chip.constants().items()]
            return MODEL.format(
                **common, data="\n".join(data), inputs=taken(self.arranged.inputs, sizes, self.arranged.states),
                results="\n".join(map(self._result, range(len(self.arranged.results)))), judge=self.recorded.judge,
                tolerance=literal(self.meaning.elements.tolerance),
            )  # fmt: skip
        zeros = {self.arranged.values[o.name].array for o in self.network.operators if isinstance(o, Input) and o.zeros}
        data = [f"    certile_fill({name}, {sizes[name]});" for name in self.data if name not in zeros]
        results = [f"    {{{step.result.array}, {sizes[step.result.array]}}}," for step in self.steps]
        return MAIN.format(
            **common, data="\n".join(data), tensors="\n".join(tensors), results="\n".join(results)
        )  # fmt: skip

    @property
    def _channels(self) -> tuple[str, str]:
        """For main.c: what moves between memories on the chip, and what compares it with the plan; here nothing."""
        return "", ""

    def _result(self, k: int) -> str:
        """A row of the table of results."""
        assert self.meaning is not None
        model, name = self.meaning.model, self.arranged.results[k]
        tensor, maker = list(model.results.items())[k]
        kind, shape = self.meaning.result_kinds[k], self.network.operator(maker).shape
        step = literal(self.arranged.steps_of.get(name, 0))
        texts = f'"{quoted(tensor)}", "{quoted(self._look(maker))}"'
        what = f"{texts}, {name}, {BYTES[kind]}, certile_read_{kind}, {step}, {len(shape)}"
        return f"    {{{what}, {{{', '.join(map(str, shape))}}}, 0, 0, 0, 0, 0, 0, 0}},"

    def _look(self, maker: str) -> str:
        """What makes a result: the last layer before it, and the host behind that."""
        number = {layer.name: t for t, layer in enumerate(self.found.layers)}
        name = maker
        while name not in number and self.network.operator(name).inputs:
            name = self.network.operator(name).inputs[0]
        if name not in number:
            return "network.c: no layer makes it"
        return f"layer {name} ({self._file_of(number[name])}), then at what is earlier"

    def _file_of(self, t: int) -> str:
        """The file of a layer."""
        group = self.chip.run_of(t)
        return f"{_group_name(group) if group else self.names[t]}.c"

    def moved(self, run: FusedRun) -> Mapping[str, int]:
        """The bytes that a group moves by its plan, by operand."""
        return Count(self.machine, Walk(self.found, run)).run_all().operand_bytes

    def _groups(self) -> str:
        """Of every group the bytes that its plan moves; a last row ends the table."""
        rows = ["static const certile_group_bytes groups[] = {"]
        for run in self.chip.grouped.values():
            moved = self.moved(run)
            rows.append(f"    {{{run.first}, {{{moved['IN']}, {moved['W']}, {moved['OUT']}, 0}}}},")
        return "\n".join([*rows, "    {-1, {0, 0, 0, 0}},", "};"])
