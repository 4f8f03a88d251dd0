"""Edits of plans that change their meaning: a seeded mutator over all kinds of plans, and what `check` says to each.

A `Subject` is a tiny request with its proven plan. An edit makes a false plan of it: a figure that does not follow, a
claim that its engine cannot make, a legal but worse plan with bound = value and OPTIMAL, a bound above the optimum, an
invented INFEASIBLE, a dropped part, a pin or setting that the plan does not keep. Digests are made to agree, so that
only the meaning can give an edit away. Whether a claim is false is told by the optimum alone, not by
`solver.plan.claims`.

Not counted: what says nothing about the plan (`FREE`), and other decisions that are as good (true figures and claims).
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from instances.errors import InputError
from solver import PlanMismatch, check
from solver.plan.plan import Plan, digest
from solver.problems.registry import pick_problem

Json = Any  # a parsed plan, edited freely
Path = tuple[str | int, ...]

#: Seconds, versions, statistics and words: they say nothing that could be false about the plan.
FREE = {
    "wall_s", "stats", "engine_version", "certile", "size", "description", "sources", "time_limit_s", "bounding",
    "full", "all_kinds", "most", "same_as", "must", "pins", "settings", "engine", "executed",
}  # fmt: skip
#: Decisions: another one may be as good, then the edit is none.
DECIDED = {
    "schedule", "tiles", "results", "actions", "banks", "on_chip", "unwritten", "waiting", "tile", "rows",
    "cols", "vector", "share", "keep", "filters", "channels", "program", "layers", "nest", "most", "cpu_config",
    "residents", "deadline_us", "period_us", "draws", "profile", "mirrored", "retain", "options", "backwards",
    "initial", "decision",
    "status",  # FEASIBLE with bound = value claims less, which is no lie
}  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """A request.

    Attributes
    ----------
    solve : callable
        (engine, further pins) -> plan.
    proves, guesses : tuple of str
        Engines; the first that proves is asked for the optimum.
    pins : callable
        Random further pins; a plan that keeps them is a plan of the request.
    values : callable
        JSON of a plan -> objectives of every part in their order, None without a plan.
    """

    name: str
    solve: Callable[[str, tuple[str, ...]], Plan]
    proves: tuple[str, ...]
    guesses: tuple[str, ...]
    pins: Callable[[random.Random], tuple[str, ...]]
    cache: dict[object, Json] = field(default_factory=dict)

    @cached_property
    def plan(self) -> Plan:
        """The proven plan."""
        found = self.solve(self.proves[0], ())
        assert found.status == "OPTIMAL", (self.name, found.status)
        return found

    @cached_property
    def data(self) -> Json:
        """The proven plan as JSON."""
        return json.loads(self.plan.to_json())

    @cached_property
    def optimum(self) -> dict[str, tuple[int, ...]]:
        """The least objectives of every part."""
        return values(self.data)

    def other(self, rng: random.Random) -> Json | None:
        """A plan that is perhaps worse, with the request of the proven one."""
        engine, pins = rng.choice((*self.guesses, self.proves[0])), self.pins(rng)
        if engine == self.proves[0] and not pins:
            return None
        if (engine, pins) not in self.cache:
            try:
                found = self.solve(engine, pins)
            except (InputError, PlanMismatch):
                self.cache[engine, pins] = None
            else:
                made = json.loads(found.to_json()) if found.objective else None
                self.cache[engine, pins] = None if made is None else self._as_asked(made)
        return copy.deepcopy(self.cache[engine, pins])

    def _as_asked(self, made: Json) -> Json:
        for name in ("pins", "options", "machine_data", "machine_digest", "machine"):
            if name in made:
                made[name] = copy.deepcopy(self.data[name])
        for row, mine in zip(made["parts"], self.data["parts"], strict=False):
            row["must"] = mine["must"]
            if row["figures"] and "lower_bound_bytes" in row["figures"]:
                row["figures"]["lower_bound_bytes"] = mine["figures"]["lower_bound_bytes"]
        return made


def whole(data: Json) -> bool:
    """Whether all parts of a plan are one claim: the network, or layers that share memories off the chip."""
    return bool(pick_problem(data["problem"]).formulation.whole) or data["shared"] is not None  # type: ignore[attr-defined]


def values(data: Json) -> dict[str, tuple[int, ...]]:
    """The objectives of every part, of the whole network under an empty name; () without a plan."""
    names = data["objectives"]
    if not whole(data):
        return {r["name"]: tuple(r["measures"][n] for n in names) if r["measures"] else () for r in data["parts"]}
    if not data["measures"]:
        return {"": ()}
    figures = data["measures"]
    return {"": tuple(figures[n] for n in names)}


def false(data: Json, optimum: dict[str, tuple[int, ...]]) -> bool:
    """Whether a plan with true figures claims what is not so."""
    mine, most = values(data), data["options"].get("most", {})
    if data["measures"] and any(data["measures"].get(name, 0) > value for name, value in most.items()):
        return True
    if data["status"] == "INFEASIBLE" and set(mine) <= {""}:
        return True
    for part, best in optimum.items():
        if part not in mine:
            return True
        row = next((r for r in data["parts"] if r["name"] == part), data) if part else data
        bound = row["bounds"].get(data["objectives"][0]) if "bounds" in row else row["bound"]
        if bound is not None and bound > best[0]:
            return True
        if row["status"] == "INFEASIBLE" or (row["status"] == "OPTIMAL" and mine[part] > best):
            return True
    return False


# ---- edits -----------------------------------------------------------------------------------------------------------


def crowned(subject: Subject, rng: random.Random) -> Json | None:
    """A worse plan as the optimum: OPTIMAL with bound = value."""
    made = subject.other(rng)
    if made is None or values(made) == subject.optimum:
        return None
    made["engine"] = rng.choice(subject.proves)
    return bounded(made, lambda _, value: value)


def raised(subject: Subject, rng: random.Random) -> Json | None:
    """A worse plan with a bound between the optimum and its value."""
    made = subject.other(rng)
    if made is None:
        return None
    made["engine"] = rng.choice(subject.proves)
    best = subject.optimum
    higher = [p for p, v in values(made).items() if v and v[0] > best[p][0] + 1]
    if not higher:
        return None
    chosen = rng.choice(higher)
    return bounded(made, lambda p, v: rng.randint(best[p][0] + 1, v - 1) if p == chosen else min(v, best[p][0]))


def bounded(data: Json, bound: Callable[[str, int], int]) -> Json:
    """Give every part a bound, and say what follows: status, gap, and sums."""

    def gap(value: int, least: int) -> float:
        return 0.0 if value == least or not value else (value - least) / value

    parts = values(data)
    if "" in parts:
        value = data["objective"]["value"]
        data["bound"] = bound("", value)
    else:
        for row in data["parts"]:
            mine = parts[row["name"]]
            least = bound(row["name"], mine[0])
            row["status"] = "OPTIMAL" if least == mine[0] else "FEASIBLE"
            row["gap"] = gap(mine[0], least)
            row["bounds"] = dict(zip(data["objectives"], (least, *mine[1:]), strict=True))
        data["bound"] = sum(row["bounds"][data["objectives"][0]] for row in data["parts"])
        value = data["objective"]["value"]
    data["gap"] = gap(value, data["bound"])
    data["status"] = "OPTIMAL" if data["bound"] == value else "FEASIBLE"
    if "" in parts and len(data["parts"]) == 1:  # the one part says what the plan says
        (row,) = data["parts"]
        row |= {name: data[name] for name in ("status", "gap")}
        row["bounds"] = dict(zip(data["objectives"], (data["bound"], *parts[""][1:]), strict=True))
    return data


_NOTHING = ("objective", "bound", "gap", "measures")


def impossible(subject: Subject, rng: random.Random) -> Json | None:
    """INFEASIBLE, with an invented conflict."""
    data = copy.deepcopy(subject.data)
    why = [
        rng.choice(["memory ocm", "no layer by itself conflicts with the machine, all of them together do", "no way"])
    ]
    row = rng.choice(data["parts"])
    row |= {"schedule": None, "figures": None, "replay": None, "measures": {}, "terms": {}, "status": "INFEASIBLE",
            "conflicts": why, "bounds": dict.fromkeys(row["bounds"]), "gap": None}  # fmt: skip
    data["conflicts"] = why if whole(data) else [f"{row['name']}: {why[0]}"]
    return data | dict.fromkeys(_NOTHING) | {"status": "INFEASIBLE"}


def by_another(subject: Subject, rng: random.Random) -> Json | None:
    """The proof is said to be of an engine that proves nothing, or that does not exist."""
    engine = rng.choice([*subject.guesses, "oracle", "", "exact", "quantum"])
    if engine in subject.guesses and subject.solve(engine, ()).status == "OPTIMAL":
        return None  # it meets a bound that needs no search
    return copy.deepcopy(subject.data) | {"engine": engine}


def demanded(subject: Subject, rng: random.Random) -> Json | None:
    """A setting that the machine does not have."""
    data = copy.deepcopy(subject.data)
    name = rng.choice([n for n, v in data["machine_data"].items() if isinstance(v, int) and not isinstance(v, bool)])
    wrong = data["machine_data"][name] + rng.choice([rng.randint(1, 99), 10**6])
    data["options"]["settings"] = [*data["options"]["settings"], f"{name}={wrong}"]
    return data


def dropped(subject: Subject, rng: random.Random) -> Json | None:
    """A layer or task less."""
    data = copy.deepcopy(subject.data)
    rows = data["parts"]
    if len(rows) == 1 and whole(data):  # of what the schedule of a network lists
        said = rows[0]["schedule"]
        lists = [said] if isinstance(said, list) else [one for one in said.values() if isinstance(one, list)]
        rows = next(iter(lists), rows)
    del rows[rng.randrange(len(rows))]
    return data


def leaf(subject: Subject, rng: random.Random) -> Json | None:
    """Anything else: one figure, word or row is another one; digests are made to agree or not."""
    data = copy.deepcopy(subject.data)
    paths = list(_paths(data))
    first = rng.choice(sorted({path[0] for path in paths}, key=str))
    path = rng.choice([one for one in paths if one[0] == first])
    at = data
    for key in path[:-1]:
        at = at[key]
    new = _another(at[path[-1]], rng)
    if new == at[path[-1]]:
        return None
    at[path[-1]] = new
    data["edited"] = path
    return data


def _paths(data: Json, path: Path = ()) -> Iterator[Path]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        # The name of a network that is not in the plan is a word, too.
        if key in FREE or (path[:1] == ("network_data",) and key == "name"):
            continue
        if key == "network" and not path and not isinstance(data.get("network_data"), dict):
            continue
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _another(value: Json, rng: random.Random) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, 2 * value, 0, value + rng.randint(2, 1000)])
    if isinstance(value, float):
        return rng.choice([value / 2, value + 0.125, 0.5])
    if isinstance(value, str):
        words = ["OPTIMAL", "FEASIBLE", "INFEASIBLE", "time", "bytes", "energy", "IN", "OUT", "W", "m", "r", "c", "x"]
        return rng.choice([*words, value[:-1], value + "1"])
    if isinstance(value, list) and value:
        kept, i = copy.deepcopy(value), rng.randrange(len(value))
        ways = [kept[:i] + kept[i + 1 :], [*kept, kept[i]], [kept[i], *kept[:i], *kept[i + 1 :]]]
        return rng.choice(ways)
    if isinstance(value, dict) and value:
        gone = rng.choice(sorted(value))
        return {k: v for k, v in value.items() if k != gone}
    return rng.choice([0, 1, "x", None, []])


EDITS: dict[str, tuple[int, Callable[[Subject, random.Random], Json | None]]] = {
    "forged optimum": (6, crowned), "raised bound": (4, raised), "false INFEASIBLE": (1, impossible),
    "engine": (1, by_another), "setting": (1, demanded), "dropped": (1, dropped), "leaf": (8, leaf),
}  # fmt: skip


# ---- the verdicts ----------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """How many edits of which family were refused, by what; and those that slipped."""

    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    proven: Counter[tuple[str, str]] = field(default_factory=Counter)
    same: int = 0
    slipped: list[str] = field(default_factory=list)

    @property
    def edits(self) -> int:
        """All that were counted."""
        return sum(self.refused.values()) + sum(self.proven.values()) + len(self.slipped)

    def __str__(self) -> str:
        names = sorted({*self.refused, *self.proven})
        rows = [
            f"{s:14} {f:17} {self.refused[s, f]:5} refused, {self.proven[s, f]:4} only with prove" for s, f in names
        ]
        head = (
            f"{self.edits} edits ({self.same} others as good): {sum(self.refused.values())} refused without proving, "
        )
        return "\n".join([f"{head}{sum(self.proven.values())} with, {len(self.slipped)} slipped", *rows, *self.slipped])


def judge(subject: Subject, family: str, data: Json, tally: Tally) -> None:
    """Check one edited plan and count it."""
    path = data.pop("edited", ())
    asked = _agreeing(data, path, family)
    key = subject.name, family
    try:
        plan = type(subject.plan).from_json(json.dumps(data))
    except InputError:
        tally.refused[key] += 1
        return
    if plan == subject.plan:  # a default was written out, or left out
        tally.same += 1
    elif not check(plan).ok:
        tally.refused[key] += 1
    elif asked:  # another request: its optimum is told by solving it
        state = check(plan, prove=True).proof
        tally.same, tally.proven[key] = tally.same + (state == "proven"), tally.proven[key] + (state == "refuted")
    elif family == "leaf" and (DECIDED & set(path)) and not false(data, subject.optimum):
        tally.same += 1
    elif family in ("forged optimum", "raised bound", "false INFEASIBLE", "leaf"):
        assert family == "leaf" or false(data, subject.optimum), (subject.name, family, values(data), subject.optimum)
        if check(plan, prove=True).ok:
            tally.slipped.append(f"{subject.name}: {family} {path} {values(data)} optimum {subject.optimum}")
        else:
            tally.proven[key] += 1
    else:
        tally.slipped.append(f"{subject.name}: {family} {path}")


def _agreeing(data: Json, path: Path, family: str) -> bool:
    """Let digests agree, and return whether another request came of it."""
    if family == "dropped" and isinstance(data.get("network_data"), list):
        named = [row["name"] for row in data["parts"]]
        data["network_data"] = [layer for layer in data["network_data"] if layer["name"] in named]
        data["network_digest"] = digest(data["network_data"])
    if path[:1] == ("machine_data",):
        data["machine_digest"], data["machine"] = digest(data["machine_data"]), data["machine_data"].get("name", "")
    elif path[:1] == ("network_data",):
        data["network_digest"] = digest(data["network_data"])
    return path[:1] in (("machine_data",), ("network_data",)) or bool({"waiting", "analysis", "objectives"} & set(path))


def run(subjects: list[Subject], number: int, seed: int) -> Tally:
    """Make and judge so many edits, the subjects in turn."""
    rng, tally, tries = random.Random(seed), Tally(), 0
    names, weights = list(EDITS), [weight for weight, _ in EDITS.values()]
    while tally.edits < number and tries < 20 * number:
        subject, family = subjects[tries % len(subjects)], rng.choices(names, weights)[0]
        tries += 1
        data = EDITS[family][1](subject, rng)
        if data is not None:
            judge(subject, family, data, tally)
    return tally
