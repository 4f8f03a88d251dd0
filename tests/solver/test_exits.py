"""Exit codes: 1 is a failed check and nothing else, lost output has its own, and good files stay."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from instances.errors import InfeasibleError, InputError, OutputError, PlanMismatch
from solver.cli.exits import exit_code
from solver.cli.main import main
from solver.plan.plan import Plan

ROOT = Path(__file__).parents[2]
FAKES = Path(__file__).parents[1] / "data" / "fakes"
C1 = ("solve", "lenet5", "-m", "scratchpad_64k", "-j", "1", "-l", "c1")


def _run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("certile", f"{sys.executable} -m solver")], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("certile list networks > /dev/full", "standard output: No space left on device"),
        ("certile list networks >&-", "standard output is closed; > /dev/null throws it away"),
        ("set -o pipefail; certile solve --help | true", "standard output: its reader left early"),
        ("set -o pipefail; certile list networks | true", "standard output: its reader left early"),
    ],
)
def test_lost_output_is_one_line_and_code_5(command: str, said: str) -> None:
    if "full" in command and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    done = _run(command)
    if "--help" in command and done.returncode == 0:
        pytest.skip("the help was written before its reader left")
    assert (done.returncode, done.stderr) == (5, f"certile: output: {said}\n")


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("certile solve nothing -m scratchpad_64k", 2),
        ("certile list machines", 0),
        ("certile solve alexnet -l conv5 -m scratchpad_64k --time-limit 20", 0),
        ("certile solve alexnet -l conv5 -m scratchpad_64k --time-limit 20 --json", 0),
    ],
)
def test_a_closed_stderr_changes_nothing(command: str, code: int) -> None:
    assert _run(f"{command} 2>&-").returncode == code


def test_a_full_disk_is_one_line_and_code_5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert main([*C1, "-o", str(tmp_path / "plan.json")]) == 5
    assert capsys.readouterr().err.splitlines() == [
        f"certile: output: file {tmp_path / 'plan.json'}: cannot be written: No space left on device"
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("x"), 6, "a defect, please report this: ZeroDivisionError: x"),
        (RuntimeError("x"), 6, "a defect, please report this: RuntimeError: x"),
        (PlanMismatch("x"), 6, "plan refused, please report this: x"),
        (MemoryError(), 4, "no plan: out of memory"),
        (InputError("x"), 2, "error: x"),
        (typer.BadParameter("x"), 2, "error: Invalid value: x (see certile --help)"),
        (InfeasibleError("x"), 3, "infeasible: x"),
        (OutputError("x"), 5, "output: x"),
        (OSError(errno.ENOSPC, "full", "plan.json"), 5, "output: file plan.json: full"),
        (KeyboardInterrupt(), 130, "interrupted: nothing was written"),
        (typer.Abort(), 130, "interrupted: nothing was written"),
    ],
)
def test_every_error_has_its_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 is a failed check and nothing else."""

    def fails() -> None:
        raise error

    assert exit_code(fails) == code
    assert capsys.readouterr().err.splitlines()[-1] == f"certile: {said}"


def test_a_command_ends_as_it_says() -> None:
    assert [exit_code(lambda code=code: code) for code in (None, 0, 1, 4, 130)] == [0, 0, 1, 4, 130]


# --- a plan without a solution never takes the place of a good one -------------------------------------------------


@pytest.fixture
def good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "plan.json"
    assert main([*C1, "-e", "greedy", "-o", str(path)]) == 0
    assert Plan.load(path).status == "FEASIBLE"
    capsys.readouterr()
    return path


@pytest.mark.parametrize(("more", "code"), [(["--engine", "gives_up"], 4), (["--set", "ocm_bytes=5"], 3)])
def test_a_good_file_stays(
    good: Path, fakes: None, more: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = good.read_bytes()
    assert main([*C1, *more, "-o", str(good)]) == code
    assert good.read_bytes() == before
    assert f"{good} is left as it is: it holds a plan, this run found none" in capsys.readouterr().out.splitlines()
    assert [p.name for p in good.parent.iterdir()] == ["plan.json"]


def test_what_was_done_is_kept_beside_a_good_file(good: Path, fakes: None, capsys: pytest.CaptureFixture[str]) -> None:
    before = good.read_bytes()
    arguments = ["solve", str(FAKES / "hard.json"), "-m", "scratchpad_64k", "-j", "1", "--engine", "gives_up"]
    assert main([*arguments, "-o", str(good)]) == 4
    assert good.read_bytes() == before
    assert f"the others are in {good}.partial" in capsys.readouterr().out
    partial = Plan.load(f"{good}.partial")
    assert sorted(p.status for p in partial.layers) == ["NO_SOLUTION_FOUND", "OPTIMAL"]


def test_a_file_without_a_solution_is_replaced(tmp_path: Path, fakes: None) -> None:
    path = tmp_path / "plan.json"
    assert main([*C1, "--engine", "gives_up", "-o", str(path)]) == 4
    assert Plan.load(path).layers[0].status == "NO_SOLUTION_FOUND"
    assert main([*C1, "--set", "ocm_bytes=5", "-o", str(path)]) == 3
    assert Plan.load(path).layers[0].status == "INFEASIBLE"
    for more, status in (
        ((), "OPTIMAL"),
        (("-e", "greedy"), "FEASIBLE"),
        ((), "OPTIMAL"),
        (("-e", "gives_up"), "OPTIMAL"),
    ):
        assert main([*C1, *more, "--objective", "bytes", "-o", str(path)]) == (4 if "gives_up" in more else 0)
        assert Plan.load(path).status == status


def test_joint_plans_keep_good_files_too(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = good.read_bytes()
    joint = ["solve", "lenet5", "-m", "scratchpad_768k", "--problem", "joint", "--pin", "T_C=99"]
    assert main([*joint, "-o", str(good)]) == 3
    assert good.read_bytes() == before
    assert "is left as it is" in capsys.readouterr().out
