"""Faults planted one at a time: which tests see them?

``python -m tests.planted [--every] [NAME ...]`` copies the tree, changes one place at a time (`FAULTS`), runs the tests
that should fail, and says by how many of them a fault is caught: by one, as the first failure ends the run, or by all
that fail (``--every``). NAME is the beginning of a name or of a file. ``-m "not slow and not bench"`` holds as in
``make test``. Tests that fail without a fault, or that never end with one, say nothing. The end is 1 where a fault is
not caught. `tests/test_planted.py` has every place still be there once.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.planted_faults import BY_FILE
from tests.planted_referees import REFEREES

ROOT = Path(__file__).resolve().parents[1]
#: Seconds that the tests of one fault may take.
LIMIT_S = 300
#: Times of files that are written, so that no compiled file of the one before is taken for theirs.
_TIMES = itertools.count(1_000_000_000)


class Fault(NamedTuple):
    """A place that is changed: `old`, which a file has once, becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self, text: str) -> str:
        """The text of the file with the fault; raises ValueError if its place is not there once."""
        found = text.count(self.old)
        if found != 1 or self.old == self.new:
            raise ValueError(f"{self.file}: {self.name}: its place is there {found} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)


FAULTS = tuple(
    Fault(name, file, old, new, tuple(tests.split()))
    for file, tests, places in (*BY_FILE, *REFEREES)
    for name, old, new in places
)  # fmt: skip


def named(names: Sequence[str]) -> Iterator[Fault]:
    """Yield the faults whose name or file begins like one of these, all for none; raises ValueError for others."""
    for name in names:
        if not any(fault.name.startswith(name) or fault.file.startswith(name) for fault in FAULTS):
            raise ValueError(f"no fault's name or file begins with {name!r}")
    begins = tuple(names) or ("",)
    yield from (fault for fault in FAULTS if fault.name.startswith(begins) or fault.file.startswith(begins))


def copied(to: Path) -> None:
    """Copy what git has or would add, as it is now."""
    said = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, said.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    os.utime(path, (now := next(_TIMES), now))


def _run(tests: Sequence[str], tree: Path, *, every: bool) -> str:
    """What tests say of a tree: how many fail, or that they pass, or why there is no verdict."""
    asked = [sys.executable, "-m", "pytest", "-q", "-n0", "-m", "not slow and not bench", "-p", "no:cacheprovider"]
    try:
        said = subprocess.run(
            [*asked, *([] if every else ["-x"]), *tests], cwd=tree, capture_output=True, text=True,
            timeout=LIMIT_S, env={**os.environ, "PYTHONPATH": str(tree)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no verdict: no end in {LIMIT_S} s"
    if said.returncode == 0:
        return "passed"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", said.stdout, re.MULTILINE)
    if said.returncode not in (1, 2) or not failed:  # 2: a module that cannot be imported
        return f"no verdict: {said.stdout[-500:]}{said.stderr[-500:]}"
    return f"caught by {len(failed) if every else 'one'}: {failed[0]}"


def tried(fault: Fault, tree: Path, *, every: bool) -> str:
    """What the tests say of a fault."""
    path = tree / fault.file
    sound = path.read_text(encoding="utf-8")
    try:
        _write(path, fault.planted(sound))
        return _run(fault.tests, tree, every=every)
    finally:
        _write(path, sound)


def main(argv: Sequence[str] | None = None) -> int:
    """Plant faults and say what comes of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--every", action="store_true", help="count all tests that fail, not only the first")
    asked = parser.parse_args(argv)
    try:
        faults = list(named(asked.names))
    except ValueError as error:
        parser.error(str(error))
    caught = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        tree = Path(folder)
        copied(tree)
        sound = {tests: _run(tests, tree, every=False) for tests in dict.fromkeys(fault.tests for fault in faults)}
        for fault in faults:
            said = sound[fault.tests]
            said = tried(fault, tree, every=asked.every) if said == "passed" else f"no verdict without it: {said}"
            caught += said.startswith("caught")
            print(f"{fault.file}: {fault.name}: {said}", flush=True)
    print(f"{caught} of {len(faults)} caught")
    return int(caught < len(faults))


if __name__ == "__main__":
    sys.exit(main())
