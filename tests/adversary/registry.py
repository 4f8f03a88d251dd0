"""The adversaries by problem, and one for C code: `TESTER` of the module of a problem's name, or of its package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from instances.problems import PROBLEMS
from tests.adversary import c_code
from tests.adversary.base import Tester


def testers() -> dict[str, Tester]:
    """Return those that there are; a formulation outside of the house may have none."""
    found: dict[str, Tester] = {}
    for name, line in PROBLEMS.items():
        module = f"{line.package}.adversary" if line.package else f"tests.adversary.{name}"
        if not line.package or find_spec(module):
            found[name] = import_module(module).TESTER
    return {**found, c_code.TESTER.name: c_code.TESTER}


TESTERS = testers()
