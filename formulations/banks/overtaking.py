"""Banks, inside one stage, where weights overtake loads: all programs that may be part of a quickest plan.

Three loads are under way as a step begins, the last one over at 100. Weights that are asked for then and begin at 90
delay it to 110; had the step begun later, so that they begin at 101, it would be there at 100: a plan that is behind
may come out ahead. So a label is not dropped because another one is nowhere greater.

Sets, Given, Variables, Constraints
    those of `formulations.banks.search`; weights overtake as `hwmodels.banks.steps` says
Objectives
    for every wait that a program leaves for the next stage's first weights: ticks until the stage ends, and bytes
Optimal means
    Two labels of a state whose times differ all by the same ticks go on alike: the earlier one is enough (SHIFT).
    Where no weights are asked for while a column may still wait for a tile (several groups of filters, weights that are
    loaded once, after the first step: `Search.calm`), times are sums and maxima, and what the last group leaves for the
    next stage's weights depends on its work alone: a label that is nowhere greater is enough (CALM).
    As long as biases are under way, only (SHIFT) is used: the next stage's weights may delay them, or just not.
    Where the stage ends, programs that leave the same waits for weights and biases are compared, no others.
    Dropped are also labels that cannot end before `latest`, by `Search.earliest`, whose times are relaxed. If the next
    stage's first weights come while the last unit works, whatever is done (QUIET), no wait is left, and labels are
    dropped that cannot end before a program that is known and leaves no wait either.

Source: the bus policy is that of the public MIDAP simulator; the search is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from formulations.banks.labels import Label
from formulations.banks.search import Search, order_of
from formulations.banks.stage import fewest
from formulations.banks.tasks import Prices, Task, actions
from formulations.banks.timing import Timed, Timing
from hwmodels.banks.steps import PassState

#: So many comparisons of two labels count as a label that is followed.
_ALIKE = 200


class TooMany(Exception):
    """More labels than are followed."""


def by_wait(found: Iterable[Timed], *, fastest: bool) -> list[Timed]:
    """Those not dominated in (ticks, bytes) by one with the same waits; with `fastest` the first of each by both."""
    best: dict[tuple[int, int], list[Timed]] = {}
    for one in sorted(found, key=lambda t: (t.ticks, t.bytes, t.program.steps)):
        known = best.setdefault((one.wait, one.late), [])
        if not known or (not fastest and one.bytes < known[-1].bytes):
            known.append(one)
    return [one for known in best.values() for one in known]


@dataclass
class Complete:
    """All programs of stages that may be part of a quickest plan."""

    fastest: bool
    """Whether ticks come first and bytes break ties; else both count."""
    most: int
    """Labels that are followed in all, before `TooMany` is raised; `_ALIKE` comparisons count as one."""
    followed: int = 0
    compared: int = 0
    _known: dict[object, tuple[int, list[Timed]]] = field(default_factory=dict)

    def of(
        self, task: Task, prices: Prices, timing: Timing, wait: int, latest: int, known: Iterable[Timed] = ()
    ) -> list[Timed]:
        """The programs after which the next stage's first weights are there by `latest`, and perhaps some later ones.

        `latest` is counted from when the stage begins; `known`: some programs. Raises TooMany.
        """
        key = (
            task, prices, timing.clock, timing.ticks, timing.groups, timing.share, timing.anew, timing.streams,
            timing.following, timing.asks, timing.biases, timing.owed, timing.columns, wait,
        )  # fmt: skip
        answer = self._known.get(key)
        if answer is None or answer[0] < latest:
            begun = task.begin()
            fits = begun is not None and fewest(task, prices) is not None
            search = _All(task, prices, timing, wait)
            search.known = list(known)
            found = search.all(begun, latest, self) if begun is not None and fits else []
            answer = self._known[key] = latest, by_wait(found, fastest=self.fastest)
        return answer[1]


class _All(Search):
    """The search through all labels of one stage."""

    def all(self, begun: PassState, latest: int, complete: Complete) -> list[Timed]:
        """The programs that (SHIFT) and (CALM) leave, and those that are known."""
        self.latest, self.complete, self.quiet = latest, complete, self._quiet(begun)
        #: Programs that are known and leave no wait.
        self.still = [one for one in self.known if not one.wait and not one.late]
        return [*self.known, *(self._costs(end, self._program(end)) for end in self.ends(begun))]

    def followed(self, labels: int) -> None:
        """Raise TooMany once too many labels are followed, or compared."""
        complete = self.complete
        complete.followed += labels
        if complete.followed + complete.compared // _ALIKE > complete.most:
            raise TooMany

    def rule(self, state: PassState, known: list[Label]) -> Callable[[Label, Label], bool]:
        """(CALM) or (SHIFT)."""
        self.complete.compared += len(known)
        return self._calm if self.calm(state) else self._shift

    def _quiet(self, begun: PassState) -> dict[PassState, bool]:
        """For every state whether the next stage's first weights come while the last unit works, whatever is done.

        A last step may have few columns left, or none: where tiles began again, or windows straddle them.
        """
        ticks, size = self.timing.ticks, self.timing.following.weights
        needed = (
            self.clock.latency(size) + self.clock.transfer(size) + self.clock.cycle - self.clock.fixed if size else 0
        )
        if self.timing.asks != "each" and size:
            needed = ticks[-1] + self.wait + needed  # how long ago they were asked for is not known
        if self.timing.anew:
            needed = max(needed, 1)  # the weights of a last step without columns may come later
        onward: dict[PassState, list[PassState]] = {}
        ahead = [begun]
        while ahead:
            state = ahead.pop()
            if state not in onward:
                onward[state] = [after for _, after in actions(self.task, state)]
                ahead += [after for after in onward[state] if after.first < self.stage.columns]
        least: dict[PassState, int] = {}
        for state in sorted(onward, key=order_of, reverse=True):
            last = ticks[-1] - ticks[state.made]
            last = min(last, self.column) if self.timing.streams else last
            works = [last if after.first == self.stage.columns else least[after] for after in onward[state]]
            least[state] = min(works, default=needed)
        return {state: work >= needed for state, work in least.items()}

    def hopeless(self, label: Label, state: PassState) -> bool:
        """Whether nothing onward is early enough, or beats the programs that are known."""
        left = self.rest(state)
        if left is None:
            return True
        ends, ready = self.earliest(label, state, left)
        if ready > self.latest:
            return True
        spent = label.bytes + left
        if not self.quiet[state] and (self.timing.asks == "each" or not self.calm(state) or label.weights > label.now):
            return False
        if label.lacking:
            return False
        return any(
            one.ticks <= ends and (one.bytes <= spent or (self.complete.fastest and one.ticks < ends))
            for one in self.still
        )

    @staticmethod
    def _shift(one: Label, other: Label) -> bool:
        """Whether one is the other one earlier (SHIFT)."""
        by = other.now - one.now
        if by < 0 or one.bytes > other.bytes or one.bus + by != other.bus or one.weights + by != other.weights:
            return False
        if any(a + by != b for a, b in zip((*one.ready, *one.biases), (*other.ready, *other.biases), strict=True)):
            return False
        if len(one.freed) != len(other.freed) or tuple(streams.moved(by) for streams in one.later) != other.later:
            return False
        return all(a + by == b for a, b in zip(one.freed, other.freed, strict=True))

    def _calm(self, one: Label, other: Label) -> bool:
        """Whether one is nowhere greater, and its weights are as far ahead (CALM)."""
        if (self.timing.asks != "each" and one.weights > one.now) or one.lacking or other.lacking:
            return self._shift(one, other)
        return one.weights - one.now == other.weights - other.now and self.beats(one, other)
