"""Where files are written, and what is never replaced. No real device is touched: all of it in a temporary folder."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from instances.errors import InputError, OutputError
from instances.jsonfile import destination, write_atomically
from solver.ask.options import check_writable


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "plan.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(Path("far") / "plan.json")
    check_writable(link)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["far", "link.json", "plan.json"], "no temporary file is left"


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "made.json")
    check_writable(link)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "made.json").read_text() == "new"


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for act in (check_writable, lambda path: write_atomically(path, "new")):
        with pytest.raises(InputError, match="cannot be written: Too many levels"):
            act(tmp_path / "a")


@pytest.mark.parametrize("linked", [False, True])
def test_a_fifo_is_written_straight_to(tmp_path: Path, linked: bool) -> None:
    fifo = path = tmp_path / "fifo"
    os.mkfifo(fifo)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(fifo)
    check_writable(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()), daemon=True)
    reader.start()
    write_atomically(path, "a plan")
    reader.join(timeout=20)
    assert read == ["a plan"]
    assert stat.S_ISFIFO(os.lstat(fifo).st_mode), "it was not replaced"


def test_sockets_folders_and_block_devices_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")  # relative: such paths are short
        with pytest.raises(InputError, match="output socket: cannot be written: is a socket"):
            check_writable("socket")
        assert stat.S_ISSOCK(os.lstat("socket").st_mode)
    with pytest.raises(InputError, match="is a directory"):
        write_atomically(tmp_path, "new")
    regular = tmp_path / "pretends"
    regular.write_text("disk")
    block = os.stat_result((stat.S_IFBLK | 0o600, *os.stat(regular)[1:]))
    monkeypatch.setattr(os, "stat", lambda *_, **__: block)
    with pytest.raises(InputError, match="is a block device"):
        destination("pretends")
    monkeypatch.undo()
    assert regular.read_text() == "disk"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"plan.json: cannot be written: No space left on device"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]
