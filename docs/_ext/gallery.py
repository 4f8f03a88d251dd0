"""The gallery: plans that are solved, and their reports made, when the site is built.

Both are made by the command line, as a reader would: ``certile solve ... -o PLAN``, ``certile report PLAN -o PAGE``. A
version without that command, or a case that fails, leaves a note on the page in place of its report.
"""

from __future__ import annotations

import html
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from instances.problems import PROBLEMS

COMMAND = "report"
_SECONDS = 120


class Case(NamedTuple):
    """A plan to be shown."""

    name: str
    """Of its page, without ``.html``."""
    title: str
    options: tuple[str, ...]
    """What ``certile solve`` is asked."""


CASES = tuple(
    Case(name, title, tuple(options.split())) for name, (title, options) in
    ((name, line.gallery) for name, line in PROBLEMS.items()) if title
)  # fmt: skip


def markdown(folder: Path, known: Collection[str], cases: Sequence[Case] = CASES) -> str:
    """Make the reports in `folder` and return the list of them as Markdown; `known` are certile's commands."""
    if COMMAND not in known:
        return _note(f"This version of certile has no command `{COMMAND}`: no reports were made.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as aside:
        return "\n\n".join(_entry(case, folder, Path(aside)) for case in cases)


def _entry(case: Case, folder: Path, aside: Path) -> str:
    """Return the heading of a case, the command that makes it, and a link to its report or what went wrong."""
    plan, page = aside / f"{case.name}.json", folder / f"{case.name}.html"
    shown = " ".join(f"'{word}'" if set(word) & set(",<>@") else word for word in case.options)
    lines = f"$ certile solve {shown} -o {plan.name}\n$ certile {COMMAND} {plan.name} -o {page.name}"
    fault = _run("solve", *case.options, "-o", str(plan)) or _run(COMMAND, str(plan), "-o", str(page))
    if not fault and not page.is_file():
        fault = f"{page.name} was not written"
    link = f'<a class="report" href="{folder.name}/{page.name}">{html.escape(case.title)}</a>'
    result = _note(f"No report was made: {fault}") if fault else f"```{{raw}} html\n<p>{link}</p>\n```"
    return f"## {case.title}\n\n```console\n{lines}\n```\n\n{result}"


def _run(*args: str) -> str:
    """Run a command of certile; return the last line that it complains with, empty if all is well."""
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "solver", *args], capture_output=True, text=True, timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"`certile {args[0]}` took more than {_SECONDS} s"
    said = done.stderr.strip().splitlines() or ["no reason given"]
    return "" if done.returncode == 0 else f"`certile {args[0]}` ended with {done.returncode}: {said[-1]}"


def _note(text: str) -> str:
    return f":::{{note}}\n{text}\n:::"
