"""The program of a network whose transfers run ahead of its steps, as the queue of its plan says.

What the host does before the first layer and behind the last one stays; between layers it may copy what layers find by
rows where others made it, and nothing else. The check compares every transfer by itself, and the bytes of all together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from formulations.fusion.latency.timelines import Carried
from hwmodels.schedule import LayerRun
from instances.errors import InputError
from solver.uses.emit.ahead.files import AheadFiles, run_file
from solver.uses.emit.ahead.near import NearFiles
from solver.uses.emit.ahead.whole import Whole
from solver.uses.emit.arrange import Copy, Host, Run, host_between
from solver.uses.emit.network import NetworkPlanned
from solver.uses.emit.offchip import OffChip
from solver.uses.emit.program import Planned, check_layer, planned_counts, runtime


@dataclass(frozen=True)
class AheadPlanned(NetworkPlanned):
    """A network and a plan with a queue. Raises InputError where C of transfers ahead is not written of it."""

    carried: Carried | None = None

    @cached_property
    def whole(self) -> Whole:
        """What lies on chip; raises NoAddresses if that is all that is missing."""
        if self.carried is None:
            raise InputError("too many transfers: none is prefetched")
        for layer in self.found.layers:
            check_layer(layer)
        return Whole(self.chip, self.machine, self.carried)

    @property
    def called(self) -> Mapping[int, LayerRun]:
        """None: layers compute step by step."""
        return {}

    @cached_property
    def _turns(self) -> tuple[list[Copy | Host | Run], list[Copy | Host | Run]]:
        """What happens before the first layer and behind the last one; raises InputError for what is in between."""
        every = self.arranged.steps
        runs = [k for k, step in enumerate(every) if isinstance(step, Run)]
        before, made = every[: runs[0]], {step.result.array for step in self.steps}
        if computed := host_between(every):
            raise InputError(computed)
        for step in every[runs[0] : runs[-1]]:
            if isinstance(step, Copy):
                if step.source.array not in made:
                    before.append(step)
                elif step.to.array in self.arranged.results or step.to.array in self._loaded:
                    raise InputError(f"the host copies between layers ({step.why})")
                else:
                    made.add(step.to.array)
        return before, every[runs[-1] + 1 :]

    @property
    def _loaded(self) -> set[str]:
        """Arrays that no layer made, and that are loaded."""
        found = set[str]()
        for (t, k), some in self.whole.given.items():
            if any(one.operand == "IN" and one.number == t for _, one in some):
                found.add(self.steps[t].inputs[k].array)
        return found

    @cached_property
    def _places(self) -> dict[str, str]:
        """Where tensors of layers lie off the chip, as C."""
        found = dict[str, str]()
        for t, step in enumerate(self.steps):
            _, weights, biases, result = self._texts(step)
            found |= {f"w {t}": weights, f"bias {t}": biases, f"out {t}": result}
            found |= {f"in {t} {k}": self.arranged.place(value) for k, value in enumerate(step.inputs)}
        return found

    def _computed(self, includes: Sequence[str]) -> dict[str, str]:
        made = runtime("certile_ahead.h", "certile_ahead.c")
        if self.machine.near is not None:
            made |= runtime("certile_near.h", "certile_near.c", "certile_channels.h", "certile_channels.c")
        return made | self._files.files(includes)

    @cached_property
    def _files(self) -> AheadFiles:
        writer = AheadFiles if self.machine.near is None else NearFiles
        return writer(self.whole, self.machine, self._places)

    @property
    def _channels(self) -> tuple[str, str]:
        """For main.c: what the plan moves between memories on the chip, and what compares with it."""
        return self._files.nests.checked() if isinstance(self._files, NearFiles) else ("", "")

    @cached_property
    def off_chip(self) -> OffChip:
        """As where every layer waits; what layers find by rows is there until they have run."""
        found, every = super().off_chip, self.arranged.steps
        numbers = [k for k, step in enumerate(every) if isinstance(step, Run)]
        for (t, _), some in self.whole.given.items():
            for _, one in some:
                if one.operand == "OUT":
                    found.touch([self.steps[one.number].result.array], numbers[t])
        for step in self._turns[0]:  # some of which others have later
            found.touch(self._touched(found, step, 0), 0)
        if self.meaning is None:  # the check compares them all at the end
            found.touch([step.result.array for step in self.steps], len(every) - 1)
        return found

    def _file_of(self, t: int) -> str:
        return run_file(*next((begin, end) for begin, end in pairwise(self.chip.begins) if t < end))

    def _functions(self) -> list[str]:
        return ["void certile_ahead(void);"]

    def _body(self) -> list[str]:
        before, after = self._turns
        body = [line for step in before for line in self._step(step, 0)]
        body += ["certile_ahead();", f"GROUP_DONE(0, {len(self.steps) - 1})"]
        body += [line for step in after for line in self._step(step, 0)]
        return self._or_one_by_one(self.arranged.steps, 0, body)

    def _groups(self) -> str:
        """The bytes of all layers and groups together."""
        moved = Counter[str]()
        for run in self.chip.grouped.values():
            moved += Counter(self.moved(run))
        for t in self.chip.alone:
            layer, nest = self.chip.counted(t)
            counts = planned_counts(Planned(layer, self.machine, nest))
            moved += Counter({operand: one.bytes for operand, one in counts.items()})
        numbers = ", ".join(str(moved[operand]) for operand in ("IN", "W", "OUT", "PSUM"))
        rows = ["static const certile_group_bytes groups[] = {", f"    {{0, {{{numbers}}}}},"]
        return "\n".join([*rows, "    {-1, {0, 0, 0, 0}},", "};", *filter(None, ["", self._channels[0]])])
