"""`python -m solver.library [FAMILY[/CASE]]... [--into FOLDER]`: make library files again, family by family.

`python -m solver.library --counts` prints the table of docs/library.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

from instances.errors import InputError
from solver.library.counts import table
from solver.library.families import FAMILIES
from solver.library.make import make
from solver.verify import PlanMismatch


def main(arguments: list[str]) -> int:
    """Make the families named, or those of the cases named; all if none is."""
    folder = Path(__file__).resolve().parents[2] / "instances" / "library"
    if "--into" in arguments:
        at = arguments.index("--into")
        folder = Path(arguments[at + 1])
        del arguments[at : at + 2]
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
            family = make(FAMILIES[name], folder, only, lambda line: print(line, flush=True))
        except (InputError, PlanMismatch) as error:  # the other families can still be made
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            failed.append(name)
        else:
            print(f"{name}: {len(family.instances)} instances", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
