"""The tables of a file of results, version 1 (docs/sweep.md explains every column), and how such a file is opened.

Plans and machines are texts deflated with a dictionary: an earlier text of their kind, which most of them are like to a
few figures. A plan of a layer is 4.4 kB of JSON, 1.7 kB deflated alone, and 0.3 kB with the plan of another layer.

The seal of a task is a digest of all that its row says of a result and of what was asked. Rows that something else than
a sweep has changed are not what their seal says: they are left out by who reads the file, and run again by who writes
it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from instances.errors import InputError, OutputError
from instances.jsonfile import LARGEST_FILE
from solver.plan.plan import digest
from solver.show.console import complain

FORMAT: Final = "certile-sweep/1"
#: In the head of the file: "crtl".
APPLICATION_ID: Final = 0x6372746C
#: Files up to this size are checked as a whole when they are opened.
_CHECKED_BYTES = 64 * 2**20
_SQLITE_HEAD = b"SQLite format 3\0"
_WRONG_PLACE = ("unable to open database file", "attempt to write a readonly database")
_WAIT_S = 60.0

TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE targets (
  id INTEGER PRIMARY KEY, network TEXT NOT NULL, layer TEXT NOT NULL, repeats INTEGER NOT NULL, layers TEXT,
  digest TEXT NOT NULL, data TEXT NOT NULL, UNIQUE (network, layer, repeats, digest));
CREATE TABLE machines (
  id INTEGER PRIMARY KEY, machine TEXT NOT NULL, settings TEXT NOT NULL, digest TEXT NOT NULL, tick_ps INTEGER NOT NULL,
  memory_bytes INTEGER, dictionary INTEGER, data BLOB NOT NULL, UNIQUE (machine, settings, digest));
CREATE TABLE questions (
  id INTEGER PRIMARY KEY, problem TEXT NOT NULL, objectives TEXT NOT NULL, engine TEXT NOT NULL, pins TEXT NOT NULL,
  all_kinds INTEGER NOT NULL, time_limit_s REAL NOT NULL,
  UNIQUE (problem, objectives, engine, pins, all_kinds, time_limit_s));
CREATE TABLE tasks (
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, target INTEGER NOT NULL REFERENCES targets,
  machine INTEGER NOT NULL REFERENCES machines, question INTEGER NOT NULL REFERENCES questions,
  status TEXT NOT NULL DEFAULT 'WAITING', value, unit TEXT, bound, gap REAL, measures TEXT, stopped TEXT, error TEXT,
  trace TEXT, seconds REAL, tries INTEGER NOT NULL DEFAULT 0, certile TEXT);
CREATE INDEX waiting ON tasks (id) WHERE status = 'WAITING';
CREATE TABLE points (
  target INTEGER NOT NULL REFERENCES targets, machine INTEGER NOT NULL REFERENCES machines,
  question INTEGER NOT NULL REFERENCES questions, task INTEGER NOT NULL REFERENCES tasks, position INTEGER NOT NULL,
  generation INTEGER NOT NULL, PRIMARY KEY (target, machine, question)) WITHOUT ROWID;
CREATE TABLE plans (task INTEGER PRIMARY KEY REFERENCES tasks, dictionary INTEGER REFERENCES dictionaries, data BLOB);
CREATE TABLE dictionaries (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE seals (task INTEGER PRIMARY KEY REFERENCES tasks, seal TEXT NOT NULL);
"""


@contextlib.contextmanager
def guarded(path: Path, *, reads: bool = False) -> Iterator[None]:
    """Turn what SQLite says into one line: InputError for a file that cannot be used, OutputError for a full disk.

    If all that happens is that the file is read (`reads`), data that make no sense are its fault, too.
    """
    try:
        yield
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        if not reads:
            raise
        raise InputError(f"sweep file {path}: is damaged: {type(error).__name__}: {error}") from error
    except sqlite3.Error as error:
        said = str(error)
        if "disk is full" in said or "disk I/O" in said:
            raise OutputError(f"sweep file {path}: cannot be written: {said}") from error
        if any(text in said for text in _WRONG_PLACE):
            raise InputError(f"sweep file {path}: cannot be written or read: {said}") from error
        if "locked" in said:
            raise InputError(f"sweep file {path}: another program holds it: {said}") from error
        raise InputError(f"sweep file {path}: is damaged, or no file of a sweep: {said}") from error


def writable(path: Path) -> sqlite3.Connection:
    """Open a file to write, or make it; whoever calls holds its lock.

    Raises InputError if it is something else, damaged, or cannot be written.
    """
    _refuse_others(path, missing=True)
    with guarded(path, reads=True):
        data = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
        try:
            data.execute("PRAGMA journal_mode = WAL").fetchone()
            data.execute("PRAGMA synchronous = NORMAL")
            if not data.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                _make(data)
            check(data, path)
        except BaseException:
            data.close()
            raise
    return data


def readable(path: Path) -> sqlite3.Connection:
    """Open a file to read, also while a sweep writes it; raises InputError as `writable`."""
    _refuse_others(path, missing=False)
    with guarded(path, reads=True):
        uri = path.resolve().as_uri()
        data = sqlite3.connect(f"{uri}?mode=ro", timeout=_WAIT_S, isolation_level=None, uri=True)
        try:
            data.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:  # a folder that nobody may write to
            data.close()
            if path.with_name(f"{path.name}-wal").exists():
                raise
            data = sqlite3.connect(f"{uri}?immutable=1", isolation_level=None, uri=True)
        try:
            check(data, path)
        except BaseException:
            data.close()
            raise
    return data


def _make(data: sqlite3.Connection) -> None:
    """All tables in one transaction: a file has them all or none."""
    data.execute("BEGIN IMMEDIATE")
    for statement in TABLES.split(";\n"):
        if statement.strip():
            data.execute(statement)
    data.execute("INSERT INTO meta VALUES ('format', ?)", (FORMAT,))
    data.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    data.execute("COMMIT")


def _refuse_others(path: Path, *, missing: bool) -> None:
    """Raise InputError for what is no SQLite file."""
    try:
        if path.is_dir() or (path.exists() and not path.is_file()):
            raise InputError(f"sweep file {path}: is no regular file")
        if not path.exists():
            if missing:
                return
            raise InputError(f"sweep file {path}: no such file")
        with open(path, "rb") as stream:
            head = stream.read(len(_SQLITE_HEAD))
    except OSError as error:
        raise InputError(f"sweep file {path}: cannot be read: {error.strerror}") from None
    if head != _SQLITE_HEAD and not (missing and not head):
        said = "is empty" if not head else "is no file of a sweep (certile sweep run SPEC writes one)"
        raise InputError(f"sweep file {path}: {said}")


def check(data: sqlite3.Connection, path: Path) -> None:
    """Raise InputError unless it is a sound file of a version that is read."""
    if data.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise InputError(f"sweep file {path}: is an SQLite file of something else")
    found = data.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    if found is None or found[0] != FORMAT:
        said = "missing" if found is None else repr(found[0])
        raise InputError(f"sweep file {path}: its format is {said}, this version reads {FORMAT!r}")
    size = path.stat().st_size
    if size % data.execute("PRAGMA page_size").fetchone()[0]:
        raise InputError(f"sweep file {path}: is damaged: its end is missing")
    if size <= _CHECKED_BYTES:
        said = data.execute("PRAGMA quick_check(1)").fetchone()[0]
        if said != "ok":
            raise InputError(f"sweep file {path}: is damaged: {said}")


# --- texts ------------------------------------------------------------------------------------------------------------


#: Deflate looks no further back.
_LONGEST = 32768


class Packer:
    """Packs texts into a file, and keeps their dictionaries there; whoever calls has begun a transaction."""

    def __init__(self, data: sqlite3.Connection) -> None:
        self._data = data
        self._known: dict[int, bytes] = {}

    def pack(self, kind: str, text: str) -> tuple[int, bytes]:
        """Return the number of the dictionary and the packed text; the first text of a kind is its dictionary."""
        data, number = text.encode(), zlib.crc32(kind.encode()) + 1
        if number not in self._known:
            found = self._data.execute("SELECT data FROM dictionaries WHERE id = ?", (number,)).fetchone()
            if found is None:
                found = (data[-_LONGEST:],)
                self._data.execute("INSERT INTO dictionaries VALUES (?, ?)", (number, *found))
            self._known[number] = found[0]
        packer = zlib.compressobj(9, zdict=self._known[number])
        return number, packer.compress(data) + packer.flush()

    def forget(self) -> None:
        """A transaction was rolled back: dictionaries may not be there."""
        self._known.clear()


def unpack(dictionary: bytes | None, data: bytes) -> str:
    """Return a text; raises ValueError if its data is damaged, or the text would be too large."""
    try:
        packer = zlib.decompressobj(zdict=dictionary or b"")
        text = packer.decompress(data, LARGEST_FILE)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not packer.eof:
        said = f"more than {LARGEST_FILE:,} bytes" if len(text) >= LARGEST_FILE else "its end is missing"
        raise ValueError(said)
    return text.decode()


# --- seals ------------------------------------------------------------------------------------------------------------


#: What is sealed of a task.
_SAID = "tasks.digest, target, machine, question, status, value, unit, bound, gap, measures, stopped, error"
#: Names of changed rows in a line.
_NAMED = 3


def _seal_of(values: Sequence[object]) -> str:
    """The seal of the values of `_SAID`."""
    return digest([repr(value) for value in values]).removeprefix("sha256:")


def seal(data: sqlite3.Connection, tasks: Collection[int]) -> None:
    """Seal some tasks as their rows are."""
    for task in tasks:
        values = data.execute(f"SELECT {_SAID} FROM tasks WHERE id = ?", (task,)).fetchone()
        data.execute("INSERT OR REPLACE INTO seals VALUES (?, ?)", (task, _seal_of(values)))


def changed(data: sqlite3.Connection) -> dict[int, str]:
    """Return the tasks whose rows are not as they were written, with their names."""
    rows = data.execute(
        f"SELECT seal, tasks.id, network, layer, {_SAID} FROM tasks JOIN targets ON target = targets.id LEFT JOIN seals"
        " ON seals.task = tasks.id WHERE status != 'WAITING' ORDER BY tasks.id"
    )
    return {
        task: f"{network} {layer}".strip() for was, task, network, layer, *said in rows if was != _seal_of(said)
    }  # fmt: skip


def complain_of(found: Mapping[int, str], path: Path, done: str) -> None:
    """Say in a line which rows are changed, and what is done about them."""
    if found:
        names = list(dict.fromkeys(found.values()))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        many = f"{len(found)} results were changed after they were"
        said = "1 result was changed after it was" if len(found) == 1 else many
        complain("warning", f"sweep file {path}: {said} written ({', '.join(names[:_NAMED])}{more}): {done}")
