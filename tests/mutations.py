"""What happens to a file: things in it are left out, doubled, retyped, overflow, are renamed or swapped; it is cut."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = Any
#: Stand for numbers that no JSON writer would write.
_RAW = ("1e308", "-1e308", "1e400", "NaN", "Infinity", "-Infinity", "-0.0", "1" * 400, "9007199254740993", "1e-320")
_WORDS = (
    "", " ", "x", "../../x", "\u202ename", "a\x1b[31mred", "a\nb", "\x00", "=1+1", "<script>alert(1)</script>",
    "a" * 5000, "\ud800", "none", "0", "-1", "1e308", "IN", "OPTIMAL", "INFEASIBLE", "cpu9", "\u2066x", "|", ",",
)  # fmt: skip
_THINGS: tuple[Json, ...] = (None, True, False, [], {}, 0, -1, 1, 1.5, 2**53, 2**40, 10**12, [[]], {"a": 1}, [None])


def mutated(name: str, data: bytes, rng: random.Random) -> bytes:
    """Return a file that is changed in one to three places."""
    if name.endswith(".json") and rng.random() < 0.85:
        return _of_json(json.loads(data), rng)
    if name.endswith(".onnx") and rng.random() < 0.6:
        return _of_model(data, rng)
    if name.endswith(".sqlite") and rng.random() < 0.6:
        return _of_sqlite(data, rng)
    if name.endswith((".csv", ".yaml")) and rng.random() < 0.8:
        return _of_text(data, rng)
    return _of_bytes(data, rng)


def _of_json(value: Json, rng: random.Random) -> bytes:
    raw: dict[str, str] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            break
        # As often in the head as deep within: by the first key, then anything below it.
        first = rng.choice(sorted({id(place[0]) for place in places[:400]} | {id(place[0]) for place in places}))
        owner, key = rng.choice([place for place in places if id(place[0]) == first])
        _change(owner, key, places, raw, rng)
    text = json.dumps(value)
    for mark, number in raw.items():
        text = text.replace(f'"{mark}"', number)
    return text.encode("utf-8", "surrogatepass")


def _places(value: Json) -> Iterator[tuple[Json, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def _change(owner: Json, key: Any, places: list[tuple[Json, Any]], raw: dict[str, str], rng: random.Random) -> None:
    """One mutation of what stands at a key."""
    way = rng.randrange(9)
    old = owner[key]
    if way == 0:
        del owner[key]
    elif way == 1 and isinstance(owner, list):
        owner.insert(rng.randrange(len(owner) + 1), copy.deepcopy(old))
    elif way == 1 and isinstance(old, list):
        owner[key] = old + copy.deepcopy(old)
    elif way == 2 or (way == 1):
        owner[key] = copy.deepcopy(rng.choice(_THINGS))
    elif way == 3:
        mark = f"@@{len(raw)}@@"
        raw[mark] = rng.choice(_RAW)
        owner[key] = mark
    elif way == 4 and isinstance(owner, dict):
        owner[rng.choice(_WORDS)] = owner.pop(key)
    elif way in (4, 5):
        owner[key] = rng.choice(_WORDS)
    elif way == 6:
        other, at = rng.choice(places)
        with contextlib.suppress(LookupError):
            owner[key], other[at] = copy.deepcopy(other[at]), old
    elif way == 7 and isinstance(old, int | float) and not isinstance(old, bool):
        owner[key] = rng.choice((old + 1, old - 1, 2 * old, -old, 0, 1, old * 1000, 10**9, 2**31, 2**50))
    elif way == 7 and isinstance(old, str):
        texts = [
            o[k] for o, k in places if k in (range(len(o)) if isinstance(o, list) else o) and isinstance(o[k], str)
        ]
        owner[key] = rng.choice((old + "x", old[:-1], old.upper(), old[::-1], *texts[:50]))
    else:
        deep: Json = old
        for _ in range(rng.choice((1, 3, 200))):
            deep = [deep]
        owner[key] = deep


def _of_text(data: bytes, rng: random.Random) -> bytes:
    lines = data.decode().split("\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        k = rng.randrange(len(lines))
        way = rng.randrange(6)
        parts = re.split(r"([,:\[\]{} ]+)", lines[k])
        at = rng.randrange(len(parts))
        words = [*_RAW, *(word for word in _WORDS if word != "\ud800"), "&a", "*a", "<<", "!!python/none", "2026-01-01"]
        if way == 0:
            del lines[k]
        elif way == 1:
            lines.insert(rng.randrange(len(lines)), lines[k])
        elif way in (2, 3):
            lines[k] = "".join([*parts[:at], rng.choice(words), *parts[at + 1 :]])
        elif way == 4:
            other = re.split(r"([,:\[\]{} ]+)", rng.choice(lines))
            lines[k] = "".join([*parts[:at], rng.choice(other), *parts[at + 1 :]])
        else:
            lines[k] = "".join([*parts[:at], *parts[at + 1 :]])
        lines = lines or [""]
    return "\n".join(lines).encode()


def _of_bytes(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    way = rng.randrange(4)
    if way == 0:
        return bytes(made[: rng.randrange(len(made) + 1)])
    for _ in range(rng.choice((1, 2, 8))):
        k = rng.randrange(len(made))
        if way == 1:
            made[k] ^= 1 << rng.randrange(8)
        elif way == 2:
            made[k : k + rng.randrange(1, 9)] = bytes(rng.randrange(256) for _ in range(rng.randrange(9)))
        else:
            made[k:k] = made[(start := rng.randrange(len(made))) : start + rng.randrange(1, 200)]
    return bytes(made)


def _of_model(data: bytes, rng: random.Random) -> bytes:
    """A model whose nodes, attributes, shapes, names or constants are changed."""
    import onnx

    model = onnx.ModelProto.FromString(data)
    graph = model.graph
    node = rng.choice(graph.node)
    word = rng.choice([word for word in _WORDS if word != "\ud800"])
    for _ in range(rng.choice((1, 1, 2))):
        way = rng.randrange(8)
        if way == 0:
            graph.node.remove(rng.choice(graph.node))
        elif way == 1:
            graph.node.append(node)
        elif way == 2 and node.attribute:
            one = rng.choice(node.attribute)
            number = rng.choice((0, -1, 2**31, 2**62, 7))
            if one.ints:
                one.ints[rng.randrange(len(one.ints))] = number
            elif one.type == onnx.AttributeProto.INT:
                one.i = number
            else:
                node.attribute.remove(one)
        elif way == 3 and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(
                (word, *(name for other in graph.node for name in other.output))
            )
        elif way == 4:
            node.op_type, node.name = rng.choice(("Conv", "MatMul", "LSTM", "Reshape", "Resize", "If", word)), word
        elif way == 5 and graph.initializer:
            one = rng.choice(graph.initializer)
            if one.dims:
                one.dims[rng.randrange(len(one.dims))] = rng.choice((0, -1, 1, 2**40, 2**62))
            one.name = rng.choice((one.name, word))
        elif way == 6:
            value = rng.choice([*graph.input, *graph.output, *graph.value_info])
            dims = value.type.tensor_type.shape.dim
            if dims:
                rng.choice(dims).dim_value = rng.choice((0, -1, 1, 2**40, 2**62))
        else:
            graph.input[0].name = word
    return model.SerializeToString()


def _of_sqlite(data: bytes, rng: random.Random) -> bytes:
    """A file of results with other values in its cells."""
    import sqlite3

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.sqlite"
        path.write_bytes(data)
        file = sqlite3.connect(path, isolation_level=None)
        names = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(rng.choice((1, 1, 2))):
            table = rng.choice(names)
            column = rng.choice([row[1] for row in file.execute(f"PRAGMA table_info({table})")])
            words = [word for word in _WORDS if word != "\ud800"]
            value = rng.choice((None, 0, -1, 2**62, 1.5, 1e308, b"\x00\xff", "[" * 3000, "{}", "[1]", *words))
            with contextlib.suppress(sqlite3.Error):
                file.execute(f"UPDATE {table} SET {column} = ?", (value,))
        file.close()
        return path.read_bytes()
