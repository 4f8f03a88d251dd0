"""State of a streaming model: a result of one call that is an input of the next, kept by the program.

An example: an LSTM reads `h0` and makes `hn`. With the state h0=hn the array of `h0` is there all the time, and the
last thing that a call does is to copy `hn` into it, so a target writes the other inputs alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from instances.errors import InputError
from instances.onnx.model import OnnxModel
from solver.uses.emit.text import block

#: So many calls with a state are recorded for the check, the state of the first of them as random as other inputs.
CALLS = 3


def parse_states(texts: Sequence[str] | None) -> dict[str, str]:
    """Read ``INPUT=RESULT`` pairs; raises InputError for others."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, result = (part.strip() for part in text.partition("="))
        if not name or not equals or not result:
            raise InputError(f"state {text!r}: write INPUT=RESULT, for example h0=hn")
        if name in found:
            raise InputError(f"state {text!r}: {name} is set twice")
        found[name] = result
    return found


def paired(model: OnnxModel, states: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    """Return of every state the numbers of its input and of its result.

    Raises InputError if the model has no such input or result, or they differ in shape or in element type.
    """
    pairs = []
    for name, result in states.items():
        where = f"state {name}={result}"
        for tensor, known, what in ((name, model.inputs, "input"), (result, model.results, "result")):
            if tensor not in known:
                raise InputError(f"{where}: {tensor} is no {what} of the model; it has {', '.join(known) or 'none'}")
        shapes = [model.network.operator(o).shape for o in (model.inputs[name], model.results[result])]
        if shapes[0] != shapes[1]:
            raise InputError(f"{where}: {name} is of {list(shapes[0])}, {result} of {list(shapes[1])}")
        kinds = [model.element(tensor) for tensor in (name, result)]
        if kinds[0] != kinds[1]:
            raise InputError(f"{where}: {name} is of {kinds[0]}, {result} of {kinds[1]}")
        pairs.append((list(model.inputs).index(name), model.outputs.index(result)))
    return tuple(pairs)


def declared(states: Sequence[tuple[str, str]], begins: Mapping[str, bytes]) -> list[str]:
    """What network.h says of the function, and of states, which are arrays of an input and of a result.

    `begins`: the state that is not zeros before the first call.
    """
    if not states:
        return ["", "/* One call: write all inputs before it, and take the results after it. */",
                "void certile_network(void);"]  # fmt: skip
    first = "what the model begins with: call it first" if begins else "zeros"
    return [
        "", "/* One call: write the other inputs before it, and take the results after it. State is kept by it:",
        *(f" * {given} is {made} of the call before" for given, made in states),
        f" * certile_reset makes it {first}. */", "void certile_network(void);", "void certile_reset(void);",
    ]  # fmt: skip


def reset(states: Sequence[tuple[str, str]], sizes: Mapping[str, int], begins: Mapping[str, bytes]) -> list[str]:
    """The function that makes all state zeros, or what it `begins` with."""
    if not states:
        return []
    cleared, tables = list[str](), list[str]()
    for given, _ in states:
        begin = begins.get(given, b"\0")
        if begin == begin[:1] * len(begin):
            cleared.append(f"    memset({given}, {begin[0]}, {sizes[given]});")
            continue
        tables += [f"static const unsigned char begin_{given}[{len(begin)}] = {{{', '.join(map(str, begin))}}};"]
        cleared.append(f"    memcpy({given}, begin_{given}, {sizes[given]});")
    body = ['    certile_open("state");', *cleared, "    certile_shut();"]
    return [*tables, "void certile_reset(void)", "{", *body, "}", ""]


def taken(inputs: Sequence[str], sizes: Mapping[str, int], states: Sequence[tuple[str, str]]) -> str:
    """How main reads the inputs of a call from a file: state for the first call alone."""
    take = {name: f"take(input, {name}, {sizes[name]});" for name in inputs}
    kept, lines = {given for given, _ in states}, list[str]()
    for first, names in groupby(inputs, lambda name: name in kept):
        mine = [take[name] for name in names]
        lines += block("if (calls == 0)", mine) if first else mine
    return "\n".join(" " * 8 + line for line in lines)
