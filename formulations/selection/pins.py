"""Pins of problem selection: limits, sizes, frequencies, cuts, techniques, and variants of layers.

Example: ``accuracy>=0.31``, ``cut=inference,back``, ``technique!=tucker``, ``conv3=base``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor

from formulations.selection.frame import MEASURES, Frame, Setting
from instances.errors import InputError, choices, did_you_mean
from instances.machine.boards import Platform
from instances.network.variants import PPM, Option, VariantLayer, Variants

_PIN = re.compile(r"(.+?)\s*(<=|>=|!=|=)\s*(.+)")
_MOST = 2**62


@dataclass(frozen=True)
class Demands:
    """What pins leave."""

    limits: Mapping[str, int] = field(default_factory=dict)
    """The most of measures."""
    frames: tuple[Callable[[Frame], bool], ...] = ()
    options: tuple[Callable[[VariantLayer, Option], bool], ...] = ()

    def allows(self, frame: Frame) -> bool:
        """Whether a frame is among those asked for."""
        return all(test(frame) for test in self.frames)

    def restrict(self, setting: Setting) -> Setting | None:
        """Leave the options that are asked for; None if a layer has none."""
        if not self.options:
            return setting
        layers = []
        for layer in setting.variants.layers:
            kept = tuple(option for option in layer.options if all(test(layer, option) for test in self.options))
            if not kept:
                return None
            layers.append(layer.model_copy(update={"options": kept}))
        variants = setting.variants.model_copy(update={"layers": tuple(layers)})
        return Setting(variants, setting.platform, setting.tick_ps, setting.configuration)


def demands(texts: Sequence[str], settings: Sequence[Setting]) -> Demands:
    """Read pins; raises InputError if a pin is unknown, or asks for what there is not."""
    limits: dict[str, int] = {}
    frames: list[Callable[[Frame], bool]] = []
    options: list[Callable[[VariantLayer, Option], bool]] = []
    for text in texts:
        name, op, value = _parts(text)
        limit = _limit(text, name, op, value, settings[0])
        if limit is not None:
            measure, most = limit
            limits[measure] = min(most, limits.get(measure, most))
        elif name in ("size", "frequency", "cut", "cpu_config"):
            frames.append(_frame(text, name, op, value, settings))
        else:
            options.append(_option(text, name, op, value, settings))
    return Demands(limits, tuple(frames), tuple(options))


def _parts(text: str) -> tuple[str, str, str]:
    found = _PIN.fullmatch(text.strip())
    if found is None:
        raise InputError(f"pin {text!r}: write NAME=VALUE, NAME!=VALUE, NAME<=N, or accuracy>=0.3")
    name, op, value = found.groups()
    return name.strip(), op, value.strip()


def _limit(text: str, name: str, op: str, value: str, setting: Setting) -> tuple[str, int] | None:
    """The measure that a pin limits, and its most."""
    if name in ("accuracy", "seconds"):
        wanted = ">=" if name == "accuracy" else "<="
        if op != wanted or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            raise InputError(f"pin {text!r}: write {name}{wanted} and a number, such as {name}{wanted}0.3")
        if name == "accuracy":
            return "error", PPM - ceil(round(float(value) * PPM, 3))
        ticks = float(value) * 10**12 / setting.tick_ps / setting.variants.images
        return "period", floor(round(ticks, 6))
    if name not in MEASURES:
        return None
    if op != "<=" or not value.isascii() or not value.isdigit() or int(value) > _MOST:
        raise InputError(f"pin {text!r}: write {name}<=N, a whole number of {MEASURES[name]}")
    return name, int(value)


def _frame(text: str, name: str, op: str, value: str, settings: Sequence[Setting]) -> Callable[[Frame], bool]:
    """A test of frames."""
    if op not in ("=", "!="):
        raise InputError(f"pin {text!r}: only = and != apply to {name}")
    same = op == "="
    if name == "cut":
        return _cut(text, value, same, settings[0].platform)
    table: dict[str, tuple[list[str], Callable[[Frame], str]]] = {
        "size": ([size.name for size in settings[0].variants.sizes], lambda frame: frame.size.name),
        "frequency": ([one.name for one in settings[0].platform.frequencies], lambda frame: frame.frequency.name),
        "cpu_config": ([one.configuration for one in settings], lambda frame: frame.setting.configuration),
    }
    known, found = table[name]
    value = value.strip("()").replace(" ", "") if name == "cpu_config" else value
    if value not in known or known == [""]:
        raise InputError(f"pin {text!r}: {name} takes {choices([one for one in known if one]) or 'nothing here'}")
    return lambda frame: (found(frame) == value) == same


def _cut(text: str, value: str, same: bool, platform: Platform) -> Callable[[Frame], bool]:
    stages = [stage.name for stage in platform.stages[1:]]
    words = {"all": tuple(stages), "none": ()}
    names = words.get(value, tuple(part.strip() for part in value.split(",")))
    if strange := [name for name in names if name not in stages]:
        raise InputError(f"pin {text!r}: {strange[0]!r} begins no thread; cut takes {choices([*stages, *words])}")
    wanted = tuple(name for name in stages if name in names)
    if same:
        return lambda frame: frame.cuts == wanted
    if len(wanted) == 1:  # this one place, whatever the others
        return lambda frame: wanted[0] not in frame.cuts
    return lambda frame: frame.cuts != wanted


def _option(
    text: str, name: str, op: str, value: str, settings: Sequence[Setting]
) -> Callable[[VariantLayer, Option], bool]:  # fmt: skip
    """A test of options: of all layers by technique, or of one layer by variant, technique or stage."""
    variants = settings[0].variants
    if op not in ("=", "!="):
        raise InputError(
            f"pin {text!r}: {name} is not a measure: {choices(MEASURES)}, accuracy and seconds have limits"
        )
    same = op == "="
    if name == "technique":
        if value not in variants.techniques:
            raise InputError(f"pin {text!r}: there is no technique {value!r}, {choices(variants.techniques) or 'none'}")
        return _everywhere(value, same)
    found = [layer for setting in settings for layer in setting.variants.layers if layer.name == name]
    if not found:
        known = [layer.name for layer in variants.layers]
        raise InputError(
            f"pin {text!r}: there is no layer {name!r}; {did_you_mean(name, known)}other pins are "
            f"{', '.join(MEASURES)}, accuracy, seconds, size, frequency, cut and technique"
        )
    there = dict.fromkeys(n for layer in found for o in layer.options for n in (o.variant, *o.techniques, o.stage))
    if value not in there:
        raise InputError(f"pin {text!r}: layer {name} has {choices(there)}")
    return lambda layer, option: layer.name != name or (value in _names(layer, option, value)) == same


def _names(layer: VariantLayer, option: Option, value: str) -> tuple[str, ...]:
    """What an option may be called by: if some variant of the layer has a name, no technique counts by it."""
    if any(o.variant == value for o in layer.options):
        return (option.variant,)
    return (*option.techniques, option.stage)


def _everywhere(technique: str, same: bool) -> Callable[[VariantLayer, Option], bool]:
    """Every layer that offers a technique takes it, or none does."""

    def test(layer: VariantLayer, option: Option) -> bool:
        offered = any(technique in o.techniques for o in layer.options)
        return (technique in option.techniques) == same or not offered

    return test


def strangers(variants: Variants, platform: Platform, where: str) -> None:
    """Raise InputError if options name stages, types or budgets that the platform does not have."""
    stages, types = [s.name for s in platform.stages], [t.name for t in platform.types]
    budgets = [budget.name for budget in platform.budgets]
    for layer, option in variants.choices:
        said = f"{where}: layer {layer.name}, variant {option.variant}"
        if option.stage not in stages:
            raise InputError(f"{said}: stage {option.stage!r} is not known, the platform has {choices(stages)}")
        if option.type not in types:
            raise InputError(f"{said}: type {option.type!r} is not known, the platform has {choices(types)}")
        if other := [name for name in option.uses if name not in budgets]:
            raise InputError(f"{said}: budget {other[0]!r} is not known, the platform has {choices(budgets) or 'none'}")
