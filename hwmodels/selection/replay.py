"""The referee of problem selection: it lets images through the threads of a pipeline, one layer after the other.

In every period a thread works through its layers once, each on the image that has come so far: on image k - s where s
is how many threads' borders lie before the layer. Maps are kept by image, with the element types in which they are
there; whoever reads one in another type finds it converted by the thread that made it, in time. What is busy how long
is read from the clocks of the threads, and not from sums.

It shares nothing with `formulations.selection` but the files that both read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hwmodels.selection.schedule import Selection
from instances.machine.boards import Handover, Platform
from instances.network.variants import PPM, Variants


@dataclass
class Walked:
    """What was seen; no measures if something is wrong."""

    measures: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


@dataclass
class _Map:
    """The map of a layer and an image: when it is complete, and the types in which it is there."""

    ready: int
    types: set[str]


class _Board:
    """Layers as they were chosen, on the platform at the chosen frequency."""

    def __init__(self, variants: Variants, platform: Platform, tick_ps: int, made: Selection) -> None:
        self.variants, self.platform, self.tick_ps = variants, platform, tick_ps
        self.size = next(size for size in variants.sizes if size.name == made.size)
        self.frequency = next(one for one in platform.frequencies if one.name == made.frequency)
        self.layers = {layer.name: layer for layer in variants.layers}
        self.chosen = {
            choice.layer: next(
                o for o in self.layers[choice.layer].options if (o.variant, o.stage) == (choice.variant, choice.stage)
            )
            for choice in made.choices
        }
        self.thread_of, thread = dict[str, str](), ""
        for stage in platform.stages:
            thread = stage.name if not thread or stage.name in made.cuts else thread
            self.thread_of[stage.name] = thread
        names = list(self.layers)
        self.sources = {
            layer.name: layer.reads if layer.reads is not None else tuple(names[max(0, k - 1) : k])
            for k, layer in enumerate(variants.layers)
        }
        self.readers = {name: [other for other in names if name in self.sources[other]] for name in names}

    def ticks(self, ps: float, stage: str) -> int:
        """A time at the frequency, to the nearest tick."""
        return round(ps * self.frequency.scale.get(stage, 1.0) / self.tick_ps)

    def thread(self, layer: str) -> str:
        """The thread of a layer."""
        return self.thread_of[self.chosen[layer].stage]

    def handover(self, source: str, target: str) -> Handover | None:
        """Between two stages."""
        return next((h for h in self.platform.handovers if (h.source, h.target) == (source, target)), None)


class _Pipeline:
    """Threads at work."""

    def __init__(self, board: _Board) -> None:
        self.board = board
        self.lists = {thread: list[str]() for thread in dict.fromkeys(board.thread_of.values())}
        self.shift = dict[str, int]()
        for name in board.layers:
            self.lists[board.thread(name)].append(name)
            self.shift[name] = max(
                (self.shift[k] + (board.thread(k) != board.thread(name)) for k in board.sources[name]), default=0
            )
        self.clock = dict.fromkeys(self.lists, 0)
        self.busy = {stage.name: 0 for stage in board.platform.stages}
        self.buffers = dict[tuple[str, str], int]()
        self.maps = dict[tuple[str, int], _Map]()
        self.faults = list[str]()

    def run(self) -> int:
        """Let the pipeline fill; return how long the first period takes in which all layers work."""
        last = max(self.shift.values())
        begin = 0
        for k in range(last + 1):
            begin = max(self.clock.values())
            self.clock = dict.fromkeys(self.clock, begin)
            self.busy = dict.fromkeys(self.busy, 0)
            for names in self.lists.values():
                for name in names:
                    if k >= self.shift[name]:
                        self.work(name, k - self.shift[name])
        return max(self.clock.values()) - begin

    def work(self, name: str, image: int) -> None:
        """Run a layer on an image."""
        board, option = self.board, self.board.chosen[name]
        for source in board.sources[name]:
            rule = board.handover(board.chosen[source].stage, option.stage)
            if rule is not None and board.thread(source) != board.thread(name):
                self.spend(option.stage, rule.receive_ns * 1000)
                self.buffers[source, name] = rule.buffer_bytes
            self.look(source, image, name)
        self.spend(option.stage, option.ps(board.variants.unit, board.size))
        made = _Map(0, {option.type})
        for reader in board.readers[name]:
            self.convert(name, made, board.chosen[reader].type)
            self.send(name, reader)
        made.ready = self.clock[board.thread(name)]
        self.maps[name, image] = made

    def look(self, source: str, image: int, reader: str) -> None:
        """Check that a map is there, complete and of the right type."""
        found, wanted = self.maps.get((source, image)), self.board.chosen[reader].type
        if found is None or found.ready > self.clock[self.board.thread(reader)]:
            self.faults.append(f"layer {reader}: it starts on image {image} before {source} is done with it")
        elif wanted not in found.types:
            self.faults.append(f"layer {reader}: it reads {wanted}, {source} is there in {', '.join(found.types)}")

    def convert(self, name: str, made: _Map, wanted: str) -> None:
        """Convert a map if nobody has."""
        option = self.board.chosen[name]
        if wanted in made.types:
            return
        rules = [
            rule for rule in self.board.platform.conversions if (rule.source, rule.target) == (option.type, wanted)
        ]
        for rule in [r for r in rules if r.stage == option.stage] or [r for r in rules if r.stage is None]:
            elements = self.board.layers[name].elements * self.board.size.scale
            self.spend(option.stage, rule.call_ns * 1000 + rule.element_ps * elements)
            made.types.add(wanted)

    def send(self, name: str, reader: str) -> None:
        """Hand a map on to a layer of another stage."""
        board, stage = self.board, self.board.chosen[name].stage
        rule = board.handover(stage, board.chosen[reader].stage)
        if rule is None:
            return
        if board.thread(name) == board.thread(reader):
            self.spend(stage, rule.serial_ns * 1000)
            return
        width = next(one.bytes for one in board.platform.types if one.name == board.chosen[reader].type)
        size = board.layers[name].elements * board.size.scale * width
        self.spend(stage, rule.send_ns * 1000 + rule.byte_ps * size + rule.square_fs * size * size / 1000)

    def spend(self, stage: str, ps: float) -> None:
        """Let a stage work for some time."""
        ticks = self.board.ticks(ps, stage)
        self.busy[stage] += ticks
        self.clock[self.board.thread_of[stage]] += ticks


def replay(variants: Variants, platform: Platform, tick_ps: int, made: Selection) -> Walked:
    """Return the measures of a schedule, of one image, or what is wrong with it."""
    unknown = _strangers(variants, platform, made)
    if unknown:
        return Walked({}, unknown)
    board = _Board(variants, platform, tick_ps, made)
    pipeline = _Pipeline(board)
    period = pipeline.run()
    accuracy = round(board.size.accuracy * PPM) - sum(option.loss_ppm for option in board.chosen.values())
    memory = sum(option.bytes for option in board.chosen.values()) + sum(pipeline.buffers.values())
    faults = list(dict.fromkeys(pipeline.faults))
    if accuracy < 1:
        faults.append(f"no accuracy is left: {accuracy} ppm")
    if platform.memory_bytes is not None and memory > platform.memory_bytes:
        faults.append(f"memory: {memory} bytes, {platform.memory_bytes} are there")
    for budget in platform.budgets:
        used = sum(option.uses.get(budget.name, 0) for option in board.chosen.values())
        if used > budget.most:
            faults.append(f"budget {budget.name}: {used} of {budget.most}")
    if faults:
        return Walked({}, faults)
    frequency, drawn = board.frequency, period * board.frequency.power_mw
    for stage in platform.stages:
        drawn += pipeline.busy[stage.name] * frequency.stage_mw.get(stage.name, stage.power_mw)
    measures = {
        "period": period, "time": sum(pipeline.busy.values()), "energy": drawn * tick_ps, "error": PPM - accuracy,
        "memory": memory, "score": drawn * tick_ps // accuracy,
    }  # fmt: skip
    return Walked(measures)


def _strangers(variants: Variants, platform: Platform, made: Selection) -> list[str]:
    """Names that the files do not have."""
    known = {
        "size": ([made.size], [size.name for size in variants.sizes]),
        "frequency": ([made.frequency], [one.name for one in platform.frequencies]),
        "cut": (made.cuts, [stage.name for stage in platform.stages[1:]]),
    }
    faults = [f"{what} {name!r} is not known" for what, (names, there) in known.items() for name in names
              if name not in there]  # fmt: skip
    if made.cuts not in platform.cuts:
        faults.append(f"cuts {', '.join(made.cuts) or 'nowhere'}: the platform does not allow them")
    if [choice.layer for choice in made.choices] != [layer.name for layer in variants.layers]:
        return [*faults, "every layer is chosen once, in order"]
    for layer, choice in zip(variants.layers, made.choices, strict=True):
        if (choice.variant, choice.stage) not in [(o.variant, o.stage) for o in layer.options]:
            faults.append(f"layer {layer.name}: no variant {choice.variant} on {choice.stage}")
    return faults
