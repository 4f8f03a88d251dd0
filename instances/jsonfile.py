"""Files of people and other tools, JSON and CSV: read with suspicion, and written atomically.

Whatever is wrong with a file, one `InputError` line says what, where, and what would be accepted.

**Characters** that a terminal or an editor obeys instead of showing: no file that certile reads may hold them.

**Writing.** A symbolic link is followed: the file that it names is written. A FIFO or character device is written
straight to and never replaced; block devices and sockets are refused.

**CSV** files are written so that no spreadsheet takes a name for a formula: a cell that begins with ``=``, ``+``,
``-``, ``@`` or a tab, and is no number, is written with an apostrophe before it, which is what spreadsheets themselves
put there for a text; it is taken off again when the file is read.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import stat
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NoReturn

from instances.errors import InputError, OutputError, did_you_mean

#: Unicode's control and format characters, among them marks of direction, and what ends a line or a paragraph.
_OBEYED = frozenset({"Cc", "Cf", "Zl", "Zp"})
#: Endings of the files that are models.
MODELS = (".onnx", ".tflite")
#: Keys below which lines may be broken: texts for people.
_FREE = frozenset({"description", "sources", "source", "note", "licence"})


def obeyed(text: str, allowed: str = "") -> str:
    """Return the first character of a text that is obeyed and not allowed; empty if there is none."""
    if text.isprintable():
        return ""
    return next((c for c in text if c not in allowed and unicodedata.category(c) in _OBEYED), "")


def escaped(text: str) -> str:
    r"""Return a text with all that cannot be shown written as ``\x1b`` or ``\u202e``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def check_texts(data: object, where: str) -> None:
    """Raise InputError if a text or a key of JSON data holds a character that is obeyed."""
    for path, text, free in _texts(data):
        if found := obeyed(text, "\n\t" if free else ""):
            shown = escaped(text if len(text) <= 60 else f"{text[:57]}...")
            raise InputError(
                f"{where}: {path}a name holds printable characters only, not {escaped(found)} (got {shown})"
            )


def _texts(data: object) -> Iterator[tuple[str, str, bool]]:
    """Every text with where it stands and whether its lines may be broken, depth first."""
    waiting: list[tuple[object, str, bool]] = [(data, "", False)]
    while waiting:
        value, at, loose = waiting.pop()
        if isinstance(value, str):
            yield f"{at}: " if at else "", value, loose
        elif isinstance(value, Mapping):
            for key, item in value.items():
                yield f"{at}: key: " if at else "key: ", str(key), False
                waiting.append((item, f"{at}.{key}" if at else str(key), loose or key in _FREE))
        elif isinstance(value, Sequence):
            waiting += [(item, f"{at}[{n}]", loose) for n, item in enumerate(value)]


def many(number: int, noun: str) -> str:
    """Return a number of things: ``1 call``, ``2,000 calls``."""
    return f"{number:,} {noun}" + "s" * (number != 1)


Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
#: No network or machine description is larger; weights do not belong in them.
LARGEST_FILE = 64 * 1024 * 1024
#: Integers beyond the range that every engine represents exactly are refused.
LARGEST_INTEGER = 2**53
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def read_bytes(path: str | os.PathLike[str], *, what: str = "file", largest: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a regular file.

    Raises InputError if it is missing, a directory or device, unreadable, empty, or larger than `largest` bytes.
    """
    where = f"{what} {os.fspath(path)}"
    try:
        state = os.stat(path)
        if stat.S_ISDIR(state.st_mode):
            raise InputError(f"{where}: is a directory, a file is needed")
        if not stat.S_ISREG(state.st_mode):
            raise InputError(f"{where}: is not a regular file")
        if state.st_size > largest:
            raise InputError(f"{where}: {state.st_size} bytes, at most {largest} are read")
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"{where}: no such file") from None
    except PermissionError:
        raise InputError(f"{where}: no permission to read it") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise InputError(f"{where}: cannot be read: {_reason(error)}") from error
    if not data:
        raise InputError(f"{where}: is empty")
    return data


def decoded(data: bytes, where: str) -> str:
    """Return UTF-8 text, with or without a byte order mark.

    Raises InputError for other bytes, and for characters that a terminal obeys, such as escapes and marks of direction.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 text (byte {error.start})") from None
    if (not text.isascii() or _CONTROL.search(text)) and (found := obeyed(text, "\n\r\t")):
        line = text[: text.index(found)].count("\n") + 1
        raise InputError(f"{where}: line {line}: holds {escaped(found)}, which is no printable character")
    return text


def bundled(folder: str, suffix: str) -> dict[str, Traversable]:
    """Return the files of a folder that certile brings, by name without suffix."""
    files = sorted((resources.files("instances") / folder).iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(suffix): file for file in files if file.name.endswith(suffix)}


def parse_json(data: bytes | str, where: str, *, comments: bool = False) -> Json:
    """Parse JSON strictly: no NaN, no repeated keys, no integers beyond 2**53, UTF-8 only, no unprintable names.

    With `comments`, keys that begin with ``//`` are left out: ``{"//tick_ps": "length of a tick", "tick_ps": 125}``.

    Raises InputError with line and column for a syntax fault.
    """
    text = decoded(data, where) if isinstance(data, bytes) else data

    def pairs(items: list[tuple[str, Json]]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for key, value in items:
            if comments and key.startswith("//"):
                continue
            if key in found:
                raise InputError(f"{where}: key {key!r} appears twice in one object")
            found[key] = value
        return found

    def integer(digits: str) -> int:
        if len(digits) > 17 or abs(int(digits)) > LARGEST_INTEGER:
            dots = "..." if len(digits) > 20 else ""
            raise InputError(f"{where}: integer {digits[:20]}{dots} is beyond 2**53")
        return int(digits)

    def real(digits: str) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise InputError(f"{where}: number {digits[:20]} is too large")
        return value

    def constant(name: str) -> NoReturn:
        raise InputError(f"{where}: {name} is not a number that JSON allows")

    try:
        parsed: Json = json.loads(
            text, object_pairs_hook=pairs, parse_int=integer, parse_float=real, parse_constant=constant
        )
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None
    if "\\" in text:  # else all characters are those of the text
        check_texts(parsed, where)
    return parsed


def check_format(fields: Mapping[str, Json], wanted: str, where: str) -> None:
    """Raise InputError if a file is of another format than this version reads."""
    if fields.get("format") != wanted:
        raise InputError(f"{where}: field format is {shown(fields.get('format'))}, this version reads {wanted!r}")


def json_by_lines(head: Mapping[str, object], name: str, rows: Iterable[str]) -> str:
    """Return JSON of fields, and of a list with a line for each of its entries, which are JSON already."""
    fields = ",\n ".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in head.items())
    return f"{{{fields},\n {json.dumps(name)}: [\n  " + ",\n  ".join(rows) + "\n ]}\n"


def shown(value: object, width: int = 60) -> str:
    """Return a short rendering of an offending value."""
    text = repr(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def destination(path: str | os.PathLike[str]) -> tuple[Path, bool]:
    """Return the file that a path names, links followed, and whether it is replaced (or else written straight to).

    Raises InputError if a file cannot be there: a directory, a block device, a socket, links in a circle.
    """
    try:
        state = os.stat(Path(path)).st_mode  # of an empty path: this folder
    except FileNotFoundError:
        return Path(os.path.realpath(path)), True
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise InputError(f"output {os.fspath(path)}: cannot be written: {_reason(error)}") from None
    if stat.S_ISREG(state):
        return Path(os.path.realpath(path)), True
    if stat.S_ISFIFO(state) or stat.S_ISCHR(state):
        return Path(path), False
    kind = "a directory" if stat.S_ISDIR(state) else "a block device" if stat.S_ISBLK(state) else "a socket"
    raise InputError(f"output {os.fspath(path)}: cannot be written: is {kind}, a file name is needed")


def write_atomically(path: str | os.PathLike[str], text: str | bytes) -> None:
    """Write UTF-8 text, or bytes, so that a reader sees the old file or the new one, never a part.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written to, or no file can be there.
    OutputError
        If the disk is full, or the reader of a FIFO left. The old file is as it was.
    """
    target, replaced = destination(path)
    try:
        data = text if isinstance(text, bytes) else text.encode()
        if replaced:
            _replace(target, data)
        else:
            with open(target, "wb") as stream:
                stream.write(data)
    except (OSError, ValueError) as error:
        wrong = isinstance(error, ValueError) or error.errno in _WRONG_PLACE
        raise (InputError if wrong else OutputError)(f"file {target}: cannot be written: {_reason(error)}") from error


#: Faults of the path; others are faults of the disk.
_WRONG_PLACE = frozenset({
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP,
})  # fmt: skip


def _reason(error: OSError | ValueError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _replace(target: Path, data: bytes) -> None:
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(
            "wb", dir=target.parent, prefix=f".{target.name}.", suffix=".tmp", delete=False
        ) as stream:
            temporary = stream.name
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    """Return the permissions an ordinary ``open(.., "w")`` would leave."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def as_object(data: Json, where: str) -> Mapping[str, Json]:
    """Return `data` if it is a JSON object, else raise InputError."""
    if not isinstance(data, dict):
        raise InputError(f"{where}: a JSON object is needed, found {_kind(data)}")
    return data


def _kind(data: Json) -> str:
    names = {list: "an array", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(data), "null")


# --- bundled networks and machines, as parsed JSON: listing them takes no records -----------------------------------

#: What a bundled name looks like; anything else is taken for a path.
BUNDLED_NAME = re.compile(r"[A-Za-z0-9_]+")


def list_networks() -> dict[str, str]:
    """Return the bundled networks: name -> one-line description."""
    return _list("network")


def list_machines() -> dict[str, str]:
    """Return the bundled machines: name -> one-line description."""
    return _list("machine")


def find(kind: str, text: str) -> tuple[Json, str]:
    """Return the parsed JSON behind a bundled name or a path, and how to call it in messages."""
    known = bundled(f"{kind}s", ".json")
    if text in known:
        return parse_json(known[text].read_bytes(), f"{kind} {text}", comments=True), f"{kind} {text}"
    if not text.strip():
        raise InputError(f"{kind}: an empty name; bundled: {', '.join(known)}")
    if text.lower().endswith(".json") or (not BUNDLED_NAME.fullmatch(text) and _exists(text)):
        return parse_json(read_bytes(text, what=kind), f"{kind} {text}", comments=True), f"{kind} {text}"
    hint = did_you_mean(text, known, cutoff=0.5)
    suffixes = "a .json, .onnx or .yaml file" if kind == "network" else "a .json file"
    raise InputError(f"unknown {kind} {shown(text)}: {hint}give {suffixes} or one of {', '.join(known)}")


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _list(kind: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in bundled(f"{kind}s", ".json"):
        data, where = find(kind, name)
        found[name] = str(as_object(data, where).get("description", ""))
    return found


# --- CSV ------------------------------------------------------------------------------------------------------------

_FORMULA = re.compile(r"[=+\-@\t\r].", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def csv_rows(lines: Iterable[str], where: str) -> list[list[str]]:
    """Return the cells of every line of a CSV file; raises InputError if it is none."""
    try:
        return [[_plain(cell) for cell in row] for row in csv.reader(lines)]
    except csv.Error as error:
        raise InputError(f"{where}: not CSV: {error}") from None


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as the text of a CSV file; None is an empty cell."""
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows([_cell(cell) for cell in row] for row in rows)
    return made.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
