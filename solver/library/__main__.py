"""`python -m solver.library [FAMILY[/CASE]]... [--into FOLDER]`: make library files again, one family after the other."""

from __future__ import annotations

import sys
from pathlib import Path

from solver.library.families import FAMILIES
from solver.library.make import make


def main(arguments: list[str]) -> int:
    """Make the families named, or those of the cases named; all if none is."""
    folder = Path(__file__).resolve().parents[2] / "instances" / "library"
    if "--into" in arguments:
        at = arguments.index("--into")
        folder = Path(arguments[at + 1])
        del arguments[at : at + 2]
    wanted: dict[str, list[str]] = {}
    for text in arguments or FAMILIES:
        name, _, case = text.partition("/")
        wanted.setdefault(name, []).extend([case] if case else [])
    for name, only in wanted.items():
        if name not in FAMILIES:
            print(f"no family {name}: there are {', '.join(FAMILIES)}", file=sys.stderr)
            return 2
        family = make(FAMILIES[name], folder, only, lambda line: print(line, flush=True))
        print(f"{name}: {len(family.instances)} instances", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
