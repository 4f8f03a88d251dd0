"""The files of a program that runs a whole network as its plan says, and checks itself on integers.

Layers run in their order, each by its function; between them the host copies tensors into other layouts where a reader
needs that. The check runs the network again layer by layer by naive loop nests, and compares every result as far as it
was written, and what every layer moved with the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from formulations.placement.blocks import Block
from hwmodels.nest.replay import replay
from hwmodels.schedule import LayerRun, Nest
from instances.errors import InputError
from instances.machine import Machine
from instances.network import Network
from instances.stores import Stores, inputs_of, stores
from instances.workload import Layer
from solver.emit.addresses import placed
from solver.emit.arrange import Arranged, Copy, Host, Run, arranged
from solver.emit.chip import ChipMap, chip_map
from solver.emit.frame import Frame, Kept
from solver.emit.mains import MAIN, MODEL, makefile
from solver.emit.meaning import Meaning
from solver.emit.nest import layer_file
from solver.emit.numbers import Numbers, integers
from solver.emit.program import exact, memories, refuse, runtime
from solver.emit.recorded import recorded
from solver.emit.table import row
from solver.emit.text import block, identifier, indented
from solver.emit.values import Value
from solver.tiling.buffers import buffers


@dataclass(frozen=True)
class NetworkPlanned:
    """A network, its machine, and what a plan says of every layer."""

    network: Network
    machine: Machine
    runs: Sequence[LayerRun]
    meaning: Meaning | None = None
    """What the network computes; without it, it is run on integers."""


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
        self.found: Stores = stores(self.network)
        self.meaning = planned.meaning
        self.arranged: Arranged = arranged(self.network, self.machine, self.meaning)
        self.taken = [self._layer(t) for t in range(len(self.runs))]
        self.tiles = [
            buffers(layer, self.machine, run.nest) for layer, run in zip(self.taken, self.runs, strict=True)
        ]  # fmt: skip
        self.addresses = self._addresses()
        self.chips = {s: self._chip(s) for s in sorted({s for run in self.runs for s in run.residents})}
        self.names = [f"layer_{t:03}_{identifier(layer.name)}" for t, layer in enumerate(self.found.layers)]

    def _layer(self, t: int) -> Layer:
        return self.found.layer(t, self.runs[t].rows, self.runs[t].unwritten)

    # ---- addresses -------------------------------------------------------------------------------------------------

    def _addresses(self) -> Mapping[str, int]:
        """Of the tiles of every layer and of every map that stays."""
        if not any(run.residents for run in self.runs):
            return {}
        blocks = [
            Block(f"{t} {b.name}", t, (b.bytes * b.copies,))
            for t, tiles in enumerate(self.tiles)
            for b in tiles
            if b.bytes and b.name != "reserved"
        ]
        if self.machine.reserved_bytes:
            blocks.append(Block("reserved", 0, (self.machine.reserved_bytes,) * len(self.runs)))
        for s, store in enumerate(self.found.stores):
            times = [t for t, run in enumerate(self.runs) if s in run.residents]
            if times:
                row_bytes = store.row_elements * self.machine.out_bytes
                rows = [self.runs[t].residents[s][0] if s in self.runs[t].residents else 0
                        for t in range(times[0], times[-1] + 1)]  # fmt: skip
                blocks.append(Block(f"map {s}", times[0], tuple(n * row_bytes for n in rows)))
        capacity = self.machine.memories["ocm"]
        if (found := placed(blocks, capacity)) is None:
            said = f"no addresses found for its {len(blocks)} buffers and maps in {capacity:,} bytes"
            raise InputError(f"network {self.network.name}: {said}: what is free is in pieces")
        return found

    def _chip(self, s: int) -> ChipMap:
        return chip_map(self.network, self.found.stores[s], self.found.members[s], self.machine, self.meaning)

    def _kept(self, t: int) -> tuple[tuple[Kept | None, ...], Kept | None]:
        """Where inputs and the result of a layer lie on chip."""
        run, layer = self.runs[t], self.found.layers[t]
        operator = self.network.operator(layer.name)
        names = inputs_of(self.network, operator, layer)

        def kept(s: int, name: str, operand: str, extent: int) -> Kept | None:
            if s not in run.residents:
                return None
            rows = self.found.stores[s].seen(run.residents[s][0], extent)
            return self.chips[s].kept(operator, operand, name, layer, self.addresses[f"map {s}"], rows)

        inputs = tuple(kept(s, name, "IN", layer.h) for s, name in zip(self.found.reads[t], names, strict=True))
        made = kept(self.found.writes[t], operator.name, "OUT", layer.r)
        return inputs if any(inputs) else (), made

    # ---- files -----------------------------------------------------------------------------------------------------

    def files(self) -> dict[str, str | bytes]:
        """All files by name."""
        files: dict[str, str | bytes] = {**runtime(), **runtime(("certile_host.h", "certile_host.c"))}
        if self._uses_rows:
            files |= runtime(("certile_rows.h", "certile_rows.c"))
        for t, name in enumerate(self.names):
            refuse(self.taken[t], self.machine, self.runs[t].nest)
            kept_in, kept_out = self._kept(t)
            frame = Frame(
                self.taken[t], self.machine, self.runs[t].nest, self._numbers(t), kept_in=kept_in,
                kept_out=kept_out,
                placed={b.name: self.addresses.get(f"{t} {b.name}", b.address) for b in self.tiles[t]},
            )  # fmt: skip
            files[f"{name}.c"] = layer_file(frame, name, ["<math.h>", '"network.h"'] if self.meaning else [])
        files["memories.c"] = memories(self.machine)
        files["network.h"] = self._header()
        files["network.c"] = self._network()
        files["main.c"] = self._main()
        files["Makefile"] = makefile()
        if self.meaning is not None:
            files |= {"weights.bin": self._weights(), **recorded(self.meaning.model)}
        return files

    @property
    def _uses_rows(self) -> bool:
        """Whether the host computes functions of several elements."""
        return any(isinstance(step, Host) and step.rows for step in self.arranged.steps)

    def _numbers(self, t: int) -> Numbers:
        layer = self.found.layers[t]
        if self.meaning is None:
            return integers(self.machine)
        return self.meaning.numbers(self.network.operator(layer.name), layer)

    def _weights(self) -> bytes:
        """Weights and biases of every layer in the order of `_data`."""
        assert self.meaning is not None
        parts = []
        for layer in self.found.layers:
            operator = self.network.operator(layer.name)
            if layer.weights == "constant":
                parts.append(self.meaning.weights(operator, layer).tobytes())
            if layer.bias:
                parts.append(self.meaning.bias(operator, layer).tobytes())
        return b"".join(parts)

    def _header(self) -> str:
        lines = [
            f"/* {self.network.name} on {self.machine.name}: tensors off the chip, and the function that runs it. */",
            "#ifndef NETWORK_H", "#define NETWORK_H", "",
        ]  # fmt: skip
        for name, (elements, size) in self.arranged.arrays.items():
            lines.append(f"extern unsigned char {name}[{elements * size}];")
        lines += ["", "void certile_network(void);", "", "/* With CERTILE_CHECK: before and after layer k. */",
                  "int certile_instead(int k);", "void certile_after(int k);", "", "#endif", ""]  # fmt: skip
        return "\n".join(lines)

    def _place(self, value: Value) -> str:
        size = self.arranged.arrays[value.array][1]
        return value.array if value.offset == 0 else f"{value.array} + {value.offset * size}"

    def _network(self) -> str:
        most = max(one.b * one.g * one.m * one.r * one.c for one in self.found.layers) * self.machine.psum_bytes
        lines = ['#include "network.h"', "", '#include "certile_host.h"', '#include "certile_check.h"']
        rows = ['#include "certile_rows.h"'] if self._uses_rows else []
        lines += [*rows, '#include "certile_tile.h"', "", "#include <math.h>", ""]
        lines += [f"unsigned char {name}[{n * size}];" for name, (n, size) in self.arranged.arrays.items()]
        lines += [f"unsigned char certile_psum[{most}];", ""]
        lines += [f"unsigned char {name}_bias[{self._bias_bytes(t)}];" for t, name in enumerate(self.names)
                  if self.taken[t].bias]  # fmt: skip
        lines += [f"certile_function {name};" for name in self.names]
        lines += [
            "", "/* A layer of the plan; a check may run another function in its place, and looks at what moved. */",
            "#ifdef CERTILE_CHECK", "#define LAYER(k, call) \\",
            "    do { if (!certile_instead(k)) { call; } certile_after(k); } while (0)",
            "#else", "#define LAYER(k, call) call", "#endif", "",
        ]  # fmt: skip
        body: list[str] = []
        t = 0
        for step in self.arranged.steps:
            if isinstance(step, Copy):
                body += self._copy(step)
            elif isinstance(step, Host):
                body += [f"/* {identifier_text(step.why)} */", *step.lines]
            else:
                body += self._call(t, step)
                t += 1
        return "\n".join([*lines, "void certile_network(void)", "{", *indented(body), "}", ""])

    def _bias_bytes(self, t: int) -> int:
        return self.taken[t].g * self.taken[t].m * (self.machine.bias_bytes or 4)

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
        bias = f"{self.names[t]}_bias" if step.layer.bias else "NULL"
        text = f"{self.names[t]}(in, {weights}, {bias}, {self._place(step.result)}, certile_psum)"
        return block("", [f"unsigned char *const in[] = {{{inputs}}};", f"LAYER({t}, {text});"])

    # ---- the check -------------------------------------------------------------------------------------------------

    def _main(self) -> str:
        runs = [step for step in self.arranged.steps if isinstance(step, Run)]
        rows, tensors = [], []
        for t, (step, name) in enumerate(zip(runs, self.names, strict=True)):
            counts = replay(self.taken[t], exact(self.machine), self.runs[t].nest, execute=False).outcome.by_operand
            rows.append(row(name, step.layer, self.machine, counts, self.taken[t].resident_out))
            inputs = ", ".join(self._place(value) for value in step.inputs)
            weights = self._place(step.weights) if step.weights else "NULL"
            bias = f"{name}_bias" if step.layer.bias else "NULL"
            tensors.append(f"    {{{{{inputs}}}, {weights}, {bias}, {self._place(step.result)}}},")
        fill = (
            "certile_fill({name}, sizeof {name});" if self.meaning is None else "take(weights, {name}, sizeof {name});"
        )
        data = [f"    {fill.format(name=name)}" for name in self._data(runs)]
        biases = [f"extern unsigned char {name}_bias[{self._bias_bytes(t)}];" for t, name in enumerate(self.names)
                  if self.taken[t].bias]  # fmt: skip
        results = [f"    {{{step.result.array}, sizeof {step.result.array}}}," for step in runs]
        if self.meaning is not None:
            made, given = self.arranged.results, self.arranged.inputs
            return MODEL.format(
                names="\n".join(f"certile_function {name};" for name in self.names), rows="\n".join(rows),
                data="\n".join(data), biases="\n".join(biases), number=len(runs),
                inputs="\n".join(f"    take(input, {name}, sizeof {name});" for name in given),
                results="\n".join(f"    give(output, expected, {name}, sizeof {name});" for name in made),
            )  # fmt: skip
        return MAIN.format(
            names="\n".join(f"certile_function {name};" for name in self.names), rows="\n".join(rows),
            tensors="\n".join(tensors), data="\n".join(data), biases="\n".join(biases), results="\n".join(results),
            number=len(runs),
        )  # fmt: skip

    def _data(self, runs: Sequence[Run]) -> list[str]:
        """Arrays that are filled: what is data, weights and biases layer by layer."""
        weights = {step.weights.array for step in runs if step.weights and step.layer.weights == "constant"}
        names = [name for name in self.arranged.data if name not in weights]
        for step, name in zip(runs, self.names, strict=True):
            if step.weights and step.layer.weights == "constant":
                names.append(step.weights.array)
            if step.layer.bias:
                names.append(f"{name}_bias")
        return names


def identifier_text(text: str) -> str:
    """Return a text that may stand in a comment."""
    return (
        "".join(c if c.isascii() and c.isprintable() else "?" for c in text).replace("*/", "* /").replace("/*", "/ *")
    )
