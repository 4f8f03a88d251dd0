"""`python -m tests.library [FAMILY[/CASE]]... [--into FOLDER] [--times N] [--open]`: make library files again.

`--times 3` gives engines three times their seconds; `--open` asks only what is not proven, or not there yet.

`python -m tests.library --counts` prints the table of docs/library.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

from instances.errors import InputError, PlanMismatch
from tests.library.counts import table
from tests.library.families import FAMILIES
from tests.library.make import make


def main(arguments: list[str]) -> int:
    """Make the families named, or those of the cases named; all if none is."""
    folder = Path(__file__).resolve().parents[2] / "instances" / "library"
    folder, times = Path(_taken(arguments, "--into") or folder), float(_taken(arguments, "--times") or 1)
    unproven = "--open" in arguments
    arguments = [text for text in arguments if text != "--open"]
    if arguments == ["--counts"]:
        print(table())
        return 0
    wanted: dict[str, list[str]] = {}
    for text in arguments or FAMILIES:
        name, _, case = text.partition("/")
        wanted.setdefault(name, []).extend([case] if case else [])
    failed = []
    for name, only in wanted.items():
        if name not in FAMILIES:
            print(f"no family {name}: there are {', '.join(FAMILIES)}", file=sys.stderr)
            return 2
        try:
            family = make(
                FAMILIES[name], folder, only, lambda line: print(line, flush=True), times=times, unproven=unproven
            )
        except (InputError, PlanMismatch) as error:  # the other families can still be made
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            failed.append(name)
        else:
            print(f"{name}: {len(family.instances)} instances", flush=True)
    return 1 if failed else 0


def _taken(arguments: list[str], option: str) -> str | None:
    """The value of an option, which is removed."""
    if option not in arguments:
        return None
    at = arguments.index(option)
    value = arguments[at + 1]
    del arguments[at : at + 2]
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
