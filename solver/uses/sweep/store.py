"""The file of a sweep while it is written: points and tasks in, results in, always whole.

Only the main process writes, in transactions: a file that was left at any moment, by `kill -9` too, holds every result
that was committed and no half of one. A task that had not been committed is waiting still. Nothing says "running".

One process writes a file at a time (`Lock`): a lock that the system lets go of when its holder ends, however it ends.
It is on ``FILE.lock`` beside the file: locks on the file itself are SQLite's.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from instances.errors import InputError, OutputError
from solver.ask.names import version
from solver.uses.sweep.schema import Packer, changed, complain_of, guarded, seal, unpack, writable
from solver.uses.sweep.tasks import FAILED, Asked, Expansion, MachinePoint, Solved, Target, Task


class Lock:
    """Holds the lock of a file until `free`.

    Raises
    ------
    InputError
        If another process holds it, or none can be made.
    OutputError
        If the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self._place = path.with_name(f"{path.name}.lock")
        while True:
            self._file = self._open()
            if not _take(self._file):
                said = self._file.read(40).strip()
                self._file.close()
                who = f"process {said}" if said else "another process"
                raise InputError(f"sweep file {path}: {who} is writing it; wait for it, or choose another file with -o")
            with contextlib.suppress(OSError):
                if os.stat(self._place).st_ino == os.fstat(self._file.fileno()).st_ino:
                    break
            self._file.close()  # the holder before us removed it in between
        try:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(f"{os.getpid()}\n")
            self._file.flush()
        except OSError as error:
            self.free()
            raise OutputError(f"file {self._place}: cannot be written: {error.strerror}") from None

    def _open(self) -> IO[str]:
        try:
            return open(self._place, "a+", encoding="utf-8")
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise OutputError(f"file {self._place}: cannot be written: {error.strerror}") from None
            raise InputError(f"file {self._place}: cannot be written: {error.strerror}") from None

    def free(self) -> None:
        """Let go of it."""
        if not self._file.closed:
            with contextlib.suppress(OSError):
                self._place.unlink()
            with contextlib.suppress(OSError):  # what could not be written stays unwritten
                self._file.close()


def _take(file: IO[str]) -> bool:
    """Whether the lock is ours now."""
    file.seek(0)
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


#: Results are committed when so many wait, or the oldest so many seconds.
_BATCH, _BATCH_S = 256, 0.5
_PAGE = 512
#: What `retry` may ask for.
RETRIES = ("failed", "open")
_LARGEST = 2**63 - 1


class Store:
    """A file of results that this process alone writes.

    Raises InputError if another process writes it, it is something else, or damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))
        self._lock = Lock(self.path)
        self._pending: list[Solved] = []
        self._since = 0.0
        with contextlib.ExitStack() as undo:
            undo.callback(self._lock.free)
            self.data = writable(self.path)
            undo.callback(self.data.close)
            self._packer = Packer(self.data)
            self._trust()
            undo.pop_all()

    def _trust(self) -> None:
        """Have tasks run again whose results something else has changed."""
        with guarded(self.path, reads=True):
            found = changed(self.data)
            complain_of(found, self.path, "it runs again" if len(found) == 1 else "they run again")
            with self._writing():
                for task in found:
                    self._again("id = ?", (task,))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction."""
        with guarded(self.path):
            self.data.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.data.execute("COMMIT")
            except BaseException:
                self.data.execute("ROLLBACK")
                self._packer.forget()
                raise

    def _again(self, which: str, values: Sequence[object] = ()) -> int:
        """Have tasks run again, in a transaction; return how many."""
        for table in ("plans", "seals"):
            self.data.execute(f"DELETE FROM {table} WHERE task IN (SELECT id FROM tasks WHERE {which})", values)
        return self.data.execute(
            "UPDATE tasks SET status = 'WAITING', value = NULL, unit = '', bound = NULL, gap = NULL, measures = '{}',"
            f" stopped = '', error = '', trace = NULL, seconds = 0 WHERE {which}",
            values,
        ).rowcount

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit what waits, and let others write."""
        try:
            with guarded(self.path):
                self.commit()
                with contextlib.suppress(sqlite3.OperationalError):  # somebody reads it: another time
                    self.data.execute("PRAGMA busy_timeout = 0")
                    self.data.execute("PRAGMA journal_mode = DELETE")  # at rest it is one file
                self.data.close()
        finally:
            self._lock.free()

    # ---- what is asked ---------------------------------------------------------------------------------------------

    def add(self, asked: Expansion, *, keep: bool = False) -> int:
        """Add points, and tasks that are not there yet, in one transaction; return how many tasks are new.

        Parameters
        ----------
        keep : bool
            Keep points that are not asked any more; else they are refused.

        Raises
        ------
        InputError
            If the file has points that are not asked, unless `keep`; nothing is changed then.
        """
        with guarded(self.path):
            before = self.data.execute("SELECT value FROM meta WHERE key = 'points'").fetchone()
        if before is not None and before[0] == asked.digest:
            return 0
        with self._writing():
            new = self._added(asked, keep=keep)
            said = {
                "points": asked.digest,
                "spec": asked.spec.model_dump_json(exclude_unset=True),
                "certile": version(),
            }
            self.data.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", said.items())
        return new

    def _added(self, asked: Expansion, *, keep: bool) -> int:
        (last,) = self.data.execute("SELECT coalesce(max(generation), 0) FROM points").fetchone()
        rows, new, position = _Rows(self.data, self._packer), 0, -1
        for position, point in enumerate(asked):
            ids = rows.target(point.target), rows.machine(point.machine), rows.question(point.asked)
            made = self.data.execute(
                "INSERT OR IGNORE INTO tasks (digest, target, machine, question, status, error, stopped, seconds,"
                " measures, unit, certile) VALUES (?, ?, ?, ?, ?, ?, '', 0, '{}', '', ?)",
                (point.digest, *ids, "BAD_INPUT" if point.error else "WAITING", point.error, version()),
            )
            if made.rowcount:
                task, new = made.lastrowid, new + 1
                if point.error and task is not None:
                    seal(self.data, [task])
            else:
                (task,) = self.data.execute("SELECT id FROM tasks WHERE digest = ?", (point.digest,)).fetchone()
            self.data.execute(
                "INSERT INTO points VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET position = excluded.position,"
                " generation = excluded.generation, task = excluded.task WHERE generation < excluded.generation",
                (*ids, task, position, last + 1),
            )
        if position < 0:
            raise InputError("sweep: no point is left: include and exclude leave out all of them")
        self._old(last + 1, position + 1, keep=keep)
        return new

    def _old(self, generation: int, count: int, *, keep: bool) -> None:
        """What to do with points that are not asked any more."""
        (old,) = self.data.execute("SELECT count(*) FROM points WHERE generation < ?", (generation,)).fetchone()
        if not old:
            return
        if not keep:
            first = self.data.execute(
                "SELECT network, layer, t.machine, settings, objectives FROM points p JOIN targets ON target ="
                " targets.id JOIN machines t ON p.machine = t.id JOIN questions ON question = questions.id"
                " WHERE generation < ? ORDER BY position LIMIT 1", (generation,),
            ).fetchone()  # fmt: skip
            said = " ".join(str(text) for text in first if text not in ("", "[]"))
            raise InputError(
                f"sweep file {self.path}: holds {old:,} points that this sweep does not ask for (the first: {said}); "
                "choose another file with -o, or --add keeps both"
            )
        self.data.execute("UPDATE points SET position = position + ? WHERE generation < ?", (count, generation))

    # ---- what is to be done ------------------------------------------------------------------------------------------

    def retry(self, what: str) -> int:
        """Have tasks run again that `failed`, or are `open` (also those that are not proven); return how many."""
        wanted = [*FAILED, *(["FEASIBLE"] if what == "open" else [])]
        places = ", ".join("?" * len(wanted))
        with self._writing():
            return self._again(f"tries > 0 AND status IN ({places})", wanted)

    @property
    def counts(self) -> dict[str, int]:
        """Number of tasks by status."""
        with guarded(self.path):
            return dict(self.data.execute("SELECT status, count(*) FROM tasks GROUP BY status ORDER BY status"))

    def waiting(self) -> Iterator[Task]:
        """Yield the tasks that wait now, in order."""
        last = 0
        while True:
            with guarded(self.path):
                rows = self.data.execute(
                    "SELECT tasks.id, targets.layer, targets.data, dictionaries.data, machines.data, problem,"
                    " objectives, engine, pins, layers, all_kinds, time_limit_s FROM tasks JOIN targets ON target ="
                    " targets.id JOIN machines ON tasks.machine = machines.id JOIN questions ON question = questions.id"
                    " LEFT JOIN dictionaries ON machines.dictionary = dictionaries.id WHERE status = 'WAITING'"
                    " AND tasks.id > ? ORDER BY tasks.id LIMIT ?", (last, _PAGE),
                ).fetchall()  # fmt: skip
            if not rows:
                return
            last = rows[-1][0]
            for number, layer, target, words, machine, problem, objectives, engine, pins, layers, kinds, limit in rows:
                asked = Asked(problem, objectives, engine, tuple(json.loads(pins)), limit or None, bool(kinds))
                named = None if layers is None else tuple(json.loads(layers))
                yield Task(number, bool(layer), target, unpack(words, machine), asked, named)

    # ---- what is done ------------------------------------------------------------------------------------------------

    def record(self, said: Solved) -> None:
        """Remember a result; it is safe after the next commit."""
        if not self._pending:
            self._since = time.monotonic()
        self._pending.append(said)
        self.tick()

    def tick(self) -> None:
        """Commit if it is time."""
        if len(self._pending) >= _BATCH or (self._pending and time.monotonic() - self._since >= _BATCH_S):
            self.commit()

    def commit(self) -> None:
        """Write all results that wait, in one transaction."""
        if not self._pending:
            return
        with self._writing():
            for said in self._pending:
                self._write(said)
        self._pending.clear()

    def _write(self, said: Solved) -> None:
        self.data.execute(
            "UPDATE tasks SET status = ?, value = ?, unit = ?, bound = ?, gap = ?, measures = ?, stopped = ?, error ="
            " ?, trace = ?, seconds = ?, tries = tries + ?, certile = ? WHERE id = ?",
            (
                said.status, _whole(said.value), said.unit, _whole(said.bound), said.gap,
                json.dumps(dict(said.measures)), said.stopped, said.error, said.trace or None, said.seconds, said.tries,
                version(), said.number,
            ),
        )  # fmt: skip
        seal(self.data, [said.number])
        if said.plan:
            (question,) = self.data.execute("SELECT question FROM tasks WHERE id = ?", (said.number,)).fetchone()
            packed = self._packer.pack(f"plan {question}", said.plan)
            self.data.execute("INSERT OR REPLACE INTO plans VALUES (?, ?, ?)", (said.number, *packed))


def _whole(value: int | None) -> int | str | None:
    """Numbers beyond 64 bits as texts: SQLite would round them."""
    return value if value is None or value <= _LARGEST else str(value)


class _Rows:
    """The numbers of rows of the small tables, made where they are missing."""

    def __init__(self, data: sqlite3.Connection, packer: Packer) -> None:
        self._data, self._packer = data, packer
        self._known: dict[object, int] = {}

    def target(self, one: Target) -> int:
        """Of a layer or network."""
        key = {"network": one.network, "layer": one.layer, "repeats": one.repeats, "digest": one.digest}
        layers = None if one.layers is None else json.dumps(one.layers)
        return self._id("targets", key, lambda: {"layers": layers, "data": one.text})

    def machine(self, one: MachinePoint) -> int:
        """Of a machine with values of fields."""

        def rest() -> dict[str, object]:
            packed = self._packer.pack(f"machine {one.machine}" if one.text else "no machine", one.text)
            said = {"tick_ps": one.tick_ps, "memory_bytes": one.memory_bytes}
            return {**said, **dict(zip(("dictionary", "data"), packed, strict=True))}

        key = {"machine": one.machine, "settings": json.dumps(one.settings), "digest": one.digest}
        return self._id("machines", key, rest)

    def question(self, one: Asked) -> int:
        """Of the rest."""
        return self._id("questions", {
            "problem": one.problem, "objectives": one.objectives, "engine": one.engine, "pins": json.dumps(one.pins),
            "all_kinds": one.all_kinds, "time_limit_s": one.time_limit_s or 0.0,
        })  # fmt: skip

    def _id(self, table: str, key: Mapping[str, object], rest: Callable[[], Mapping[str, object]] = dict) -> int:
        """The number of a row with this key, made with the rest of its columns."""
        known = (table, *key.values())
        if known not in self._known:
            row = {**key, **rest()}
            places = ", ".join("?" * len(row))
            self._data.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({places})", (*row.values(),))
            where = " AND ".join(f"{name} = ?" for name in key)
            found = self._data.execute(f"SELECT id FROM {table} WHERE {where}", (*key.values(),)).fetchone()
            if found is None:
                raise sqlite3.DatabaseError(f"table {table} refuses a row and has none like it")
            self._known[known] = int(found[0])
        return self._known[known]
