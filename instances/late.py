"""What is imported when it is first used: the one mechanism of the house for it.

A place is a text, ``package.module:name``. `Later` is a table of names whose values are loaded one by one, `late` a
function that is loaded when it is called, and `face` makes the names of a package, or of a module, such a table. So
start-up pays for what a command uses, not for what there is. Types stay known: a face imports its names once more
under ``if TYPE_CHECKING``. tests/test_architecture.py counts places as imports, and tests/test_startup.py names what
the light commands must not load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


def load(place: str) -> Any:
    """Return what is at a place: ``package.module:name``."""
    module, _, name = place.partition(":")
    return vars(import_module(module))[name]


def late(place: str) -> Callable[..., Any]:
    """Return a function that is imported when it is first called."""
    return partial(_call, place)


def _call(place: str, *args: Any, **named: Any) -> Any:
    return load(place)(*args, **named)


class Later(MutableMapping[str, T]):
    """Names, each with its place, whose values are made when they are asked for, each once; names alone cost nothing.

    `make` makes the value of a name from the name and what is at its place; by default that itself.
    """

    def __init__(
        self, places: Mapping[str, str] | None = None, make: Callable[[str, Any], T] = lambda name, found: found
    ) -> None:
        self.places = dict(places or {})
        self._made: dict[str, T] = {}
        self._make = make

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self._make(name, load(self.places[name]))
        return self._made[name]

    def __setitem__(self, name: str, value: T) -> None:
        self.places.setdefault(name, "")
        self._made[name] = value

    def __delitem__(self, name: str) -> None:
        del self.places[name]
        self._made.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def add(self, places: Mapping[str, str]) -> None:
        """Add names."""
        self.places.update(places)


class _Face(ModuleType):
    """A module whose names are loaded when they are asked for."""

    _later: Later[Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._later:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = self._later[name]
        super().__setattr__(name, found)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        # Python binds a submodule to its package once it is imported; a name of the face (`solver.solve`) goes
        # first.
        if not (isinstance(value, ModuleType) and name in self._later):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._later})


def face(module: str, names: Mapping[str, str]) -> list[str]:
    """Let a module that is being imported offer names that are loaded when they are asked for; return them, sorted.

    `module` is its ``__name__``, `names` say where they are: ``{"solver.calls.solve": "explain pareto show solve"}``.
    """
    made = sys.modules[module]
    places = {name: f"{where}:{name}" for where, several in names.items() for name in several.split()}
    vars(made)["_later"] = Later(places)
    made.__class__ = _Face
    return sorted(places)
