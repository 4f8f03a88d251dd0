"""The driver of the adversary: testers in turn on random cases, finds shrunk and written to disk.

Case k of a problem is drawn by a generator seeded with (seed, problem, k), and judged by another one seeded alike: a
run of the same version can be repeated, and every find can be looked at alone. A find is shrunk greedily: the first
simpler case that still disagrees takes its place, until there is none or the time for it is over.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from instances.errors import InputError
from instances.jsonfile import as_object, parse_json, read_bytes, write_atomically
from solver.ask.names import version
from solver.ask.progress import Progress, Silent
from solver.ask.watch import Watch
from tests.adversary.base import Disagreement, Tester

FORMAT = "certile-disagreement/1"
#: Seconds for shrinking a find, and finds after which a problem is left alone.
SHRINK_S, MOST_FINDS = 60.0, 5


@dataclass(frozen=True)
class Find(Disagreement):
    """A disagreement, shrunk, and the file that it was written to."""

    seed: str
    file: str = ""

    def to_json(self) -> dict[str, object]:
        """Return what the file says."""
        return {
            "format": FORMAT, "certile": version(), "versions": _versions(), "problem": self.problem,
            "what": self.what, "seed": self.seed, "instance": dict(self.instance),
        }  # fmt: skip


@dataclass
class Report:
    """What a run did: cases by problem, finds, seconds."""

    seed: int
    instances: dict[str, int] = field(default_factory=dict)
    finds: list[Find] = field(default_factory=list)
    wall_s: float = 0.0
    interrupted: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON data."""
        return {
            "certile": version(), "seed": self.seed, "instances": self.instances, "wall_s": round(self.wall_s, 1),
            "interrupted": self.interrupted,
            "finds": [{"problem": f.problem, "what": f.what, "file": f.file} for f in self.finds],
        }  # fmt: skip


def selftest(
    testers: Mapping[str, Tester], *, seed: int = 0, minutes: float | None = 1.0, most: int | None = None,
    folder: str | Path | None = None, progress: Progress | None = None, shrink_s: float = SHRINK_S,
) -> Report:  # fmt: skip
    """Run testers in turn until the time is over or each has had `most` cases.

    Parameters
    ----------
    folder : path, optional
        Where finds are written, one file each; made when there is one. None: nowhere.
    shrink_s : float
        Seconds for shrinking a find; 0 leaves it as it was found.

    Raises
    ------
    InputError
        If a find cannot be written.
    """
    start = time.monotonic()
    end = inf if minutes is None else start + 60 * minutes
    report = Report(seed, dict.fromkeys(testers, 0))
    bar = progress or Silent()
    bar.begin(most * len(testers) if most else max(1, int(60 * (minutes or 0))), "selftest")
    shown = 0
    with Watch() as watch:
        try:
            while (names := _left(testers, report, most)) and not watch.stopped and time.monotonic() < end:
                for name in names:
                    if watch.stopped or time.monotonic() >= end:
                        break
                    with watch.armed():
                        _one(testers[name], report, folder, shrink_s)
                    done = sum(report.instances.values()) if most else int(time.monotonic() - start)
                    for _ in range(shown, done):
                        bar.advance(_said(report))
                    shown = max(shown, done)
        except KeyboardInterrupt:
            report.interrupted = True
        finally:
            bar.end()
    report.interrupted |= watch.stopped
    report.wall_s = time.monotonic() - start
    return report


def _left(testers: Mapping[str, Tester], report: Report, most: int | None) -> list[str]:
    """The problems that still want cases."""
    finds = [find.problem for find in report.finds]
    return [
        name for name in testers
        if finds.count(name) < MOST_FINDS and (most is None or report.instances[name] < most)
    ]  # fmt: skip


def _said(report: Report) -> str:
    counts = ", ".join(f"{name} {count}" for name, count in report.instances.items())
    return f"{counts}; {len(report.finds)} disagree"


def _one(tester: Tester, report: Report, folder: str | Path | None, shrink_s: float) -> None:
    number = report.instances[tester.name]
    seed = f"{report.seed}/{tester.name}/{number}"
    case = tester.case(random.Random(seed))
    found = judge(tester, case, seed)
    report.instances[tester.name] = number + 1
    if found:
        find = Find(**vars(shrunk(tester, found[0], seed, shrink_s)), seed=seed)
        report.finds.append(_written(find, folder, len(report.finds)) if folder is not None else find)


def judge(tester: Tester, case: object, seed: str) -> list[Disagreement]:
    """Return what is wrong with a case; the same for the same seed."""
    return tester.run(case, random.Random(f"{seed}/run"))


def shrunk(tester: Tester, found: Disagreement, seed: str, seconds: float = SHRINK_S) -> Disagreement:
    """Return the disagreement of the simplest case that was found within some seconds."""
    end = time.monotonic() + seconds
    best, again = found, True
    while again:
        again = False
        for case in tester.smaller(tester.from_json(best.instance)):
            if time.monotonic() >= end:
                return best
            if less := judge(tester, case, seed):
                best, again = less[0], True
                break
    return best


def _written(find: Find, folder: str | Path, number: int) -> Find:
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"output {target}: the folder cannot be made: {error.strerror}") from error
    file = target / f"{find.problem}-{find.seed.split('/')[0]}-{find.seed.rsplit('/', 1)[-1]}-{number}.json"
    write_atomically(file, json.dumps(find.to_json(), indent=1) + "\n")
    return replace(find, file=str(file))


def _versions() -> dict[str, str]:
    import importlib.metadata

    found = {}
    for name in ("numpy", "ortools", "pulp", "highspy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def load_case(path: str, testers: Mapping[str, Tester]) -> tuple[Tester, object, str]:
    """Read a written find: its tester, its case and its seed.

    Raises
    ------
    InputError
        If the file is no find, or of a problem that is not known.
    """
    where = f"case {path}"
    data = as_object(parse_json(read_bytes(path, what="case"), where), where)
    if data.get("format") != FORMAT:
        raise InputError(f"{where}: format {data.get('format')!r}, expected {FORMAT!r}")
    name, instance, seed = data.get("problem"), data.get("instance"), data.get("seed")
    tester = testers.get(name) if isinstance(name, str) else None
    if tester is None:
        raise InputError(f"{where}: problem {name!r}, expected one of {', '.join(testers)}")
    if not isinstance(instance, Mapping) or not isinstance(seed, str):
        raise InputError(f"{where}: 'instance' must be an object and 'seed' a text")
    return tester, tester.from_json(instance), seed


def chosen(names: Sequence[str], testers: Mapping[str, Tester]) -> dict[str, Tester]:
    """Return the testers of these names, all without names; raises InputError for unknown ones."""
    for name in names:
        if name not in testers:
            raise InputError(f"unknown problem {name!r}: expected one of {', '.join(testers)}")
    return {name: tester for name, tester in testers.items() if not names or name in names}
