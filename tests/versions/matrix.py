"""Measure which highspy works beside which OR-Tools in one process, in either order of import; print a table.

``python tests/versions/matrix.py [FOLDER]`` makes one virtual environment per OR-Tools and one folder per highspy
under FOLDER (default: a new temporary one), runs `probe.py` in a child process for each order of the imports and of the
solves, and `reported.py` for the models that some release answers wrongly. Not collected by pytest: it needs a package
index and some minutes. `docs/versions.md` holds the result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ORTOOLS = ("9.14.6206", "9.15.6755")
HIGHSPY = ("1.8.1", "1.9.0", "1.10.0", "1.11.0", "1.12.0", "1.13.0", "1.13.1", "1.14.0", "1.15.0", "1.15.1")
PULP = "pulp>=3.3,<4"
IMPORTS = ("ortools,highspy", "highspy,ortools")
SOLVES = ("cp-sat,milp", "milp,cp-sat")
PROBE = Path(__file__).with_name("probe.py")


def environment(folder: Path, ortools: str) -> Path:
    """The interpreter of an environment with this OR-Tools and PuLP."""
    python = folder / f"ortools-{ortools}" / "bin" / "python"
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"ortools=={ortools}", PULP], check=True)
    return python


def library(folder: Path, python: Path, highspy: str) -> Path:
    """A folder for PYTHONPATH that holds this highspy alone."""
    target = folder / f"highspy-{highspy}"
    if not target.exists():
        command = [python, "-m", "pip", "install", "-q", "--no-deps", "--target", target, f"highspy=={highspy}"]
        subprocess.run(command, check=True)
    return target


def verdict(python: Path, target: Path, imports: str, solves: str) -> str:
    """What one child process came to, in a few words."""
    run = subprocess.run(
        [python, PROBE, imports, solves],
        env=os.environ | {"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if run.returncode < 0:
        return f"killed by signal {-run.returncode}"
    if run.returncode:
        last = (run.stderr.strip().splitlines() or ["no message"])[-1]
        return "undefined symbol" if "undefined symbol" in last else last[:90]
    answer = json.loads(run.stdout.strip().splitlines()[-1])
    return f"{'right' if answer['right'] else 'WRONG ANSWER'}, HiGHS {answer['highs_in_use']}"


def reported(python: Path, target: Path) -> str:
    """How many of the models of `reported.py` are answered wrongly, and which."""
    run = subprocess.run(
        [python, PROBE.with_name("reported.py")],
        env=os.environ | {"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if run.returncode:
        return "does not run"
    answers = json.loads(run.stdout.strip().splitlines()[-1])
    wrong = [f"{name} {a['said']} for {a['right']}" for name, a in answers.items() if a["said"] != a["right"]]
    return "WRONG: " + ", ".join(wrong) if wrong else "right"


def main() -> None:
    """Print one row per pair."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="versions-"))
    print("| ortools | highspy | ortools imported first | highspy imported first | reported models |")
    print("|---|---|---|---|---|")
    for ortools in ORTOOLS:
        python = environment(folder, ortools)
        for highspy in HIGHSPY:
            target = library(folder, python, highspy)
            cells = []
            for imports in IMPORTS:
                seen = [verdict(python, target, imports, solves) for solves in SOLVES]
                cells.append(seen[0] if len(set(seen)) == 1 else " / ".join(seen))
            print(f"| {ortools} | {highspy} | {cells[0]} | {cells[1]} | {reported(python, target)} |", flush=True)


if __name__ == "__main__":
    main()
