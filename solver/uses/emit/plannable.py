"""What can be planned of a network, and what C can be written of a model, before any search: all reasons why not.

Every problem of `solver.problems.registry` is asked what it asks before it searches: of the network on the machine, of
every layer by itself, and, so that a machine that does not fit hides nothing, of the network on a machine of the
problem's own. C is asked by `solver.uses.emit.preflight`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.network.network import Network, unlike_elements
from instances.network.operators import Input, Operator
from instances.onnx.model import is_onnx, read_model
from instances.problems import PROBLEMS as LINES
from instances.problems import nested
from solver.ask.sizes import Sizes
from solver.calls.solve import ask
from solver.problems.problem import Problem
from solver.problems.registry import PROBLEMS
from solver.uses.emit.preflight import fitted, refusals

#: Where C is asked for if no machine is named, with the elements of the model.
_DEFAULT = "scratchpad_768k"


@dataclass(frozen=True)
class Preflight:
    """What is known of a model without a search."""

    network: Network
    machine: Machine | None
    notes: tuple[str, ...] = ()
    """Where the machine's elements are not those of the file."""
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Problem -> why it cannot be asked of the network on the machine; nothing if it can."""
    c: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Why no C is written whatever the plan is (under ""), and of problems why not if a plan does what is named."""
    on: str = ""
    """The machine that C was asked for."""

    def lines(self) -> list[str]:
        """The report, a line each."""
        found, left = self.network, self.network.unplanned
        weights = sum(o.count_parameters(found.input_shapes(o)) for o in found.operators)
        said = [
            f"{found.name}: {len(found.operators)} operators, {len(found.layers)} layers "
            f"({len(found.conv_layers)} conv or matmul), {found.macs:,} MACs, {weights:,} parameters"
            + (f"; not planned: {left}" if left else "")
        ]
        said += [found.description] if found.description else []
        if found.map_type:
            said.append(f"maps of {found.map_type}, weights of {found.weight_type or 'a type that is not known'}")
        for name, reasons in self.problems.items():
            said += _answers(f"problem {name}", "can be asked", reasons)
        return said + list(self._c_lines())

    def _c_lines(self) -> Iterator[str]:
        always = self.c.get("", ())
        yield from (f"C on {self.on}: no: {reason}" for reason in always)
        for name, reasons in self.c.items():
            if not name:
                continue
            if not reasons and not always:
                yield f"C of {name} on {self.on}: can be written"
            yield from (f"C of {name} on {self.on}: not of a plan that needs it: {reason}" for reason in reasons)

    def to_json(self) -> str:
        """The same for programs."""
        found = self.network
        return json.dumps(
            {
                "network": found.name, "operators": len(found.operators), "layers": len(found.layers),
                "macs": found.macs, "parameters": found.parameters, "map_type": found.map_type,
                "weight_type": found.weight_type, "opaque": list(found.warnings), "notes": list(self.notes),
                "problems": {name: list(reasons) for name, reasons in self.problems.items()},
                "c": {"machine": self.on, **{name or "always": list(reasons) for name, reasons in self.c.items()}},
            },
            indent=1,
        )  # fmt: skip


def _answers(what: str, yes: str, reasons: Sequence[str]) -> list[str]:
    return [f"{what}: {yes}"] if not reasons else [f"{what}: no: {reason}" for reason in reasons]


def preflight(
    model: str | os.PathLike[str], machine: Machine | str | None = None, *, batch: int | None = None,
    symbols: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
) -> Preflight:  # fmt: skip
    """Say what can be planned of a model, and what C can be written; nothing is searched.

    Parameters
    ----------
    machine : Machine, str or path, optional
        Without one no problem is asked, and C for the model's elements.
    batch, symbols, shapes, values
        Open sizes and constant inputs, as of `instances.load.load_network`.

    Raises
    ------
    InputError
        If the model or the machine cannot be read.
    """
    sizes = Sizes.of(symbols, shapes, values)
    network = sizes.load(model, batch)
    real = load_machine(machine) if isinstance(machine, str) else machine
    problems = {} if real is None else dict(_problems(network, real))
    notes = () if real is None else unlike_elements(network, real)
    if not is_onnx(model):
        return Preflight(network, real, notes, problems)
    try:
        read = read_model(model, batch=batch, symbols=symbols, shapes=shapes, values=values)
    except InputError as error:  # weights that lie elsewhere: what is planned needs their shapes alone
        return Preflight(network, real, notes, problems, {"": (str(error),)}, _DEFAULT if real is None else real.name)
    on = fitted(read, load_machine(_DEFAULT)) if real is None else real
    found = refusals(read, on)
    able = [name for name in nested() if not problems.get(name)]
    further = {name: tuple(one for one in found.of(name) if one not in found.always) for name in able}
    return Preflight(network, real, notes, problems, {"": tuple(found.always), **further}, on.name)


def _problems(network: Network, machine: Machine) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every problem that plans networks, with its reasons."""
    for problem in PROBLEMS.values():
        try:
            problem.objectives(None, network)
        except InputError:  # it plans something else: buffers, variants, several networks
            continue
        yield problem.name, reasons_of(problem, network, machine)


def reasons_of(problem: Problem, network: Network, machine: Machine, **asked: Any) -> tuple[str, ...]:
    """Return all reasons why a problem cannot be asked of a network on a machine; `asked` as of `solve`."""
    first = _refused(problem, network, machine, asked)
    if first is None:
        return ()
    found = {first: None}
    own = load_machine(LINES[problem.name].template)
    other = _refused(problem, network, own, {})
    if other is not None:
        found[other] = None
        for operator in network.operators:
            if (alone := _alone(network, operator)) is not None:
                said = _refused(problem, alone, own, {})
                found |= {said: None} if said is not None else {}
    return tuple(found)


def _refused(problem: Problem, network: Network, machine: Machine, asked: Mapping[str, Any]) -> str | None:
    try:
        able, question = ask(network, machine, problem=problem.name, **asked)
        able.ready(question)
    except InputError as error:
        return str(error)
    return None


def _alone(network: Network, operator: Operator) -> Network | None:
    """A network of one layer; None for an operator that is none."""
    shapes = network.input_shapes(operator)
    if operator.layer(shapes) is None:
        return None
    given = {name: Input(name=name, shape=shape) for name, shape in zip(operator.inputs, shapes, strict=True)}
    if getattr(operator, "weights_of", ""):
        operator = operator.model_copy(update={"weights_of": "", "own_bias": False})
    return Network(name=network.name, operators=(*given.values(), operator))
