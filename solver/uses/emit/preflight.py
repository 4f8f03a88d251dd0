"""What can be planned of a network, and what C can be written of a model, before any search: all reasons why not.

Every problem of `solver.problems.registry` is asked what it asks before it searches: of the network on the machine, of
every layer by itself, and, so that a machine that does not fit hides nothing, of the network on a machine of the
problem's own.

No C is refused here that the emitter does not refuse: its own code is asked, operator by operator and layer by
layer, and goes on where it raises. What depends on the plan is asked of all that plans may do: every map that may stay
on chip stays whole, every two layers may be in one group. Such a reason of problem joint or fusion *may* be met.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import Any, TypeVar

from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.network.network import Network, unlike_elements
from instances.network.operators import Input, Operator
from instances.network.stores import stores
from instances.network.workload import Layer
from instances.onnx.file import is_model
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel, read_model
from instances.problems import PROBLEMS as LINES
from instances.problems import nested
from solver.ask.sizes import Sizes
from solver.calls.solve import ask
from solver.problems.problem import Problem
from solver.problems.registry import PROBLEMS
from solver.uses.emit.arrange import Run, host_between
from solver.uses.emit.arrange_model import ModelArranger, check_elements
from solver.uses.emit.groups import as_read, check_images
from solver.uses.emit.kinds import Elements
from solver.uses.emit.meaning import Meaning, check_scale
from solver.uses.emit.onchip import OnChip, check_passes, no_zeros
from solver.uses.emit.passing import Passing
from solver.uses.emit.program import check_layer, check_sums
from solver.uses.emit.values import Value

Made = TypeVar("Made")

#: Bytes of maps, weights and sums that some model has: floats of 4 and of 2 bytes, integers of 8 and of 16 bits.
_SIZES = ((4, 4, 4), (2, 2, 4), (1, 1, 4), (2, 1, 4), (2, 2, 8))

#: Where C is asked for if no machine is named, with the elements of the model.
_DEFAULT = "scratchpad_768k"
#: So many reasons are spelled out in one line.
MOST_REASONS = 5


@dataclass
class Refusals:
    """Why no C is written, a line each; nothing where it is."""

    always: dict[str, None] = field(default_factory=dict)
    """Whatever the plan is."""
    maps: dict[int, str] = field(default_factory=dict)
    """Maps that cannot stay on chip between layers (problems joint and fusion), by their stores."""
    groups: dict[int, str] = field(default_factory=dict)
    """Maps that cannot be passed within a group of layers (problem fusion), by their stores."""
    cuts: dict[int, str] = field(default_factory=dict)
    """Layers before which a group has to end, with the map that they see otherwise than a layer before does, or weights
    that a layer before has, too.
    """

    ahead: str = ""
    """Why transfers cannot run ahead, whatever the plan is: what the host computes between layers."""

    def ask(self, question: Callable[[], Made]) -> Made | None:
        """The answer; None, and a reason is noted, if it is refused."""
        try:
            return question()
        except InputError as error:
            self.always.setdefault(str(error))
            return None

    @contextmanager
    def noted(self, reasons: dict[int, str], store: int) -> Iterator[None]:
        """What is refused within is the reason of a map, unless it is met anyway."""
        try:
            yield
        except InputError as error:
            if str(error) not in self.always:
                reasons[store] = str(error)

    def in_dram(self, problem: str) -> dict[int, str]:
        """The maps that have to lie in DRAM so that C of a problem's plans is written, with the reason."""
        return (self.groups if problem == "fusion" else {}) | (self.maps if problem in nested("network") else {})

    def of(self, problem: str) -> tuple[str, ...]:
        """The reasons of a problem: of joint and fusion also those that its plan may meet."""
        maps = self.maps.values() if problem in nested("network") else ()
        groups = self.groups.values() if problem == "fusion" else ()
        return tuple(dict.fromkeys((*self.always, *maps, *groups)))


def refusals(model: OnnxModel, machine: Machine, rule: str | None = None) -> Refusals:
    """Return all that the emitter refuses of a model on a machine, without a plan; `rule` is that of `requantise`."""
    found = Refusals()
    found.ask(partial(check_elements, machine))
    fitting: Machine | None = machine
    if found.ask(Meaning(model, machine).counted) is None:  # the rest can be asked of elements as the model has them
        fitting = fitted(model, machine)
    if fitting is None:
        return found
    known = found.ask(Meaning(model, fitting, rule).counted)
    meaning = _Meaning(model, fitting, found, known.rule if known else "float")
    arranger = _Arranger(meaning, found)
    found.ask(arranger.run)
    made = arranger.made.steps
    found.ahead = host_between(made)
    for layer in model.network.layers:
        operator = model.network.operator(layer.name)
        found.ask(partial(check_layer, layer))
        found.ask(partial(check_sums, layer, fitting))
        found.ask(partial(meaning.numbers, operator, layer))
        if layer.weights == "constant":
            found.ask(partial(meaning.trained, operator, layer))
    if machine.bank_count and model.network.layers:
        matrices = {arranger.number[step.layer.name]: step.weights for step in made if isinstance(step, Run)}
        chip = OnChip(model.network, machine, stores(model.network), (), meaning, matrices)
        _stay(chip, found)
        _cut(chip, found)
    return found


def fitted(model: OnnxModel, machine: Machine) -> Machine | None:
    """Return a machine with elements as a model has them; None if there are no such."""
    for maps, weights, sums in _SIZES:
        sizes = {"in_bytes": maps, "out_bytes": maps, "w_bytes": weights, "psum_bytes": sums, "bias_bytes": 0}
        other = machine.model_copy(update=sizes)
        if Refusals().ask(Meaning(model, other).counted) is not None:
            return other
    return None


def check_model(
    model: OnnxModel, machine: Machine, others: Sequence[str] = (), rule: str | None = None
) -> Refusals:  # fmt: skip
    """Return what plans may meet; raise InputError, before any search, if no C is written whatever the plan is.

    `others` are reasons why there is no plan, `rule` is that of `requantise`.
    """
    found = refusals(model, machine, rule)
    if reasons := [*others, *found.always]:
        shown = "; ".join(reasons[:MOST_REASONS])
        left = len(reasons) - MOST_REASONS
        more = f"; and {left} more: certile import {model.path} -m {machine.name} names them" if left > 0 else ""
        raise InputError(f"model {model.path}: {shown}{more}")
    return found


# --- the emitter, going on where it refuses ---------------------------------------------------------------------------


class _Meaning(Meaning):
    """Refuses scales that depend on the data one by one."""

    def __init__(self, model: OnnxModel, machine: Machine, found: Refusals, rule: str) -> None:
        super().__init__(model, machine, rule)
        self.found = found
        for node in map(Node, model.origin.values()):
            found.ask(partial(check_scale, node))

    @cached_property
    def elements(self) -> Elements:
        """What maps are held as."""
        return self.counted()

    @cached_property
    def passing(self) -> Passing:
        """The functions between layers."""
        return _Passing(self.model, self.elements, self.found)


class _Passing(Passing):
    """Refuses tensors one by one; takes their elements for real numbers then."""

    def __init__(self, model: OnnxModel, elements: Elements, found: Refusals) -> None:
        super().__init__(model, elements)
        self.found = found

    def _kind(self, operator: Operator, given: str) -> str:
        return self.found.ask(partial(super()._kind, operator, given)) or "f32"


class _Arranger(ModelArranger):
    """Refuses operators one by one; each has an array all the same."""

    def __init__(self, meaning: _Meaning, found: Refusals) -> None:
        self.found = found
        super().__init__(meaning, meaning.machine)

    def _value(self, number: int, operator: Operator) -> Value:
        made = self.found.ask(partial(super()._value, number, operator))
        return made or self._instead(number, operator)

    def _layer(self, number: int, operator: Operator, layer: Layer) -> None:
        self.found.ask(partial(super()._layer, number, operator, layer))
        if operator.name not in self.made.values:
            self.made.values[operator.name] = self._instead(number, operator)

    def _instead(self, number: int, operator: Operator) -> Value:
        return self.new(f"refused_{number}", operator.shape)


# --- what depends on the plan -----------------------------------------------------------------------------------------


def _stay(chip: OnChip, found: Refusals) -> None:
    """Ask of every map that may stay on chip whether each of its layers sees it there, alone and within a group."""
    known = chip.found
    for s in chip.broadcast:
        with found.noted(found.groups, s):
            raise chip.no_broadcast(s)
    for s, store in enumerate(known.stores):
        if store.zeros:
            with found.noted(found.groups, s):
                raise no_zeros(store)
        sharing = [t for t, one in enumerate(known.shared) if one == s] if store.weights else []
        with found.noted(found.maps, s):  # each sees the weights where another one has brought them
            for t in sharing[1:]:
                chip.weights_seen(t, sharing[0])
        if store.dram or not store.readers or not store.parts:
            continue
        seen = [(t, known.layers[t].name, "OUT") for t, _ in store.parts]
        seen += [(t, name, "IN") for t in store.readers for name in chip.names(t, s)]
        with found.noted(found.maps, s):
            for t, name, operand in seen:
                layer = known.layers[t]
                chip.chip(s).kept(chip.network.operator(layer.name), operand, name, layer, 0, store.rows)
        if store.whole:  # never passed from strip to strip
            continue
        with found.noted(found.groups, s):
            makers = [known.layers[t] for t, _ in store.parts]
            for t in store.readers:
                check_images(known, s, [*makers, as_read(known, t, s)])
                for name, maker in product(chip.names(t, s), makers if len(makers) > 1 else ()):
                    check_passes(chip.chip(s), name, maker.name, known.layers[t])


def _cut(chip: OnChip, found: Refusals) -> None:
    """Find layers that see a map from outside of their group otherwise than one before: another part, or computed."""
    for s, store in enumerate(chip.found.stores):
        if not (store.whole or store.dram or s in found.maps or s in found.groups):
            continue
        before = ""
        for t in store.readers:
            for name in chip.names(t, s):
                if before and not chip.chip(s).same(before, name):
                    found.cuts[t] = store.name
                before = name
    seen: set[int] = set()
    for t, tensor in enumerate(chip.found.shared):  # C of a group has a tensor of weights for one layer
        if tensor in seen and chip.found.stores[tensor].biases is not None:
            found.cuts[t] = chip.found.stores[tensor].name
        seen |= {tensor} if tensor >= 0 else set()


# --- what can be planned, and what C can be written -------------------------------------------------------------------


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
            said += [f"problem {name}: {answer}" for answer in [f"no: {one}" for one in reasons] or ["can be asked"]]
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
        said = {
            "network": found.name, "operators": len(found.operators), "layers": len(found.layers),
            "macs": found.macs, "parameters": found.parameters, "map_type": found.map_type,
            "weight_type": found.weight_type, "opaque": list(found.warnings), "notes": list(self.notes),
            "problems": {name: list(reasons) for name, reasons in self.problems.items()},
            "c": {"machine": self.on, **{name or "always": list(reasons) for name, reasons in self.c.items()}},
        }  # fmt: skip
        return json.dumps(said, indent=1)


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
    if not is_model(model):
        return Preflight(network, real, notes, problems)
    try:
        read = read_model(model, batch=batch, symbols=symbols, shapes=shapes, values=values)
    except InputError as error:  # weights that lie elsewhere: what is planned needs their shapes alone
        return Preflight(network, real, notes, problems, {"": (str(error),)}, _DEFAULT if real is None else real.name)
    on = real or fitted(read, load_machine(_DEFAULT)) or load_machine(_DEFAULT)
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
            alone = _alone(network, operator)
            said = _refused(problem, alone, own, {}) if alone is not None else None
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
