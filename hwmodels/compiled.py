"""Functions of whole numbers and rows of them, compiled by numba where it is installed (`pip install certile[numba]`).

A function that is `compiled` is an ordinary one at first. When all of them together have taken `PATIENCE` seconds, as
long as compiling takes, they are compiled; what they do stays the same. An example: networks of a few layers are
planned before that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

import numpy as np

Arguments = ParamSpec("Arguments")
Function = TypeVar("Function", bound=Callable[..., Any])
#: Seconds that all functions take together before they are compiled.
PATIENCE = 2.0


def jit(function: Function, signature: Any = None) -> Function:
    """Compile a function, for later runs, too, where there is a folder for that; as it is without numba."""
    try:
        import numba
    except ImportError:
        return function
    try:
        made: Any = numba.njit(signature, nogil=True, cache=True)(function)
    except RuntimeError:  # there is no folder to keep it in
        made = numba.njit(signature, nogil=True)(function)
    return made  # type: ignore[no-any-return]


class compiled(Generic[Arguments]):  # noqa: N801 - a decorator
    """A function of numbers and rows of int64 that writes into its rows, and returns a number or nothing.

    It reads rows one number at a time: until it is compiled they are handed over as lists, and written back.
    """

    spent: ClassVar[float] = 0.0
    """Seconds that all such functions have taken."""

    def __init__(self, function: Callable[Arguments, int | None]) -> None:
        self.function, self.__doc__ = function, function.__doc__
        self.made: Callable[Arguments, int | None] | None = None
        """The function compiled."""

    def __call__(self, *arguments: Arguments.args, **named: Arguments.kwargs) -> int | None:
        """What the function returns."""
        if self.made is None and compiled.spent > PATIENCE:
            made = jit(self.function)
            if made is self.function:
                compiled.spent = float("-inf")
            else:
                self.made = made
        if self.made is not None:
            return self.made(*arguments, **named)
        start = time.perf_counter()
        rows: list[Any] = [one.tolist() if isinstance(one, np.ndarray) else one for one in arguments]
        found = self.function(*rows, **named)
        for one, row in zip(arguments, rows, strict=True):
            if isinstance(one, np.ndarray):
                one[:] = row
        compiled.spent += time.perf_counter() - start
        return found
