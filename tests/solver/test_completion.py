"""Completion in the shell: the scripts are run by real shells, with no certile and no Python within reach."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from instances.library_format import library
from instances.load import list_machines, list_networks
from solver.cli.completion.scripts import script
from solver.cli.completion.words import SHELLS, Words, words_of
from solver.cli.main import app, main
from solver.problems.registry import PROBLEMS

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="no bash here")


def _corners() -> list[str]:
    return sorted(one.name for one in library() if one.name.startswith("tiling-corners/"))


@pytest.fixture(scope="module")
def words() -> Words:
    return words_of(typer.main.get_command(app))


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory, words: Words) -> Path:
    """A folder with the script, some files, and a PATH of sed alone."""
    folder = tmp_path_factory.mktemp("bash")
    (folder / "script").write_text(script("bash", words), encoding="utf-8")
    (folder / "bin").mkdir()
    sed = shutil.which("sed")
    assert sed is not None
    (folder / "bin" / "sed").symlink_to(sed)
    (folder / "work").mkdir()
    for name in ("model.onnx", "my npu.json", "plan.json"):
        (folder / "work" / name).touch()
    line = ' {"op": "conv", "name": "only", "inputs": ["x"]},\n {"op": "pool", "name": "p"}\n'
    (folder / "work" / "net.json").write_text(f'{{"operators": [\n{line}]}}\n', encoding="utf-8")
    return folder


def answers(folder: Path, *typed: str) -> list[str]:
    """What bash offers for the last of the words typed, which bash has cut as it does."""
    assert BASH is not None
    quoted = " ".join(f"'{word}'" for word in ("certile", *typed))
    commands = f"source ../script; COMP_WORDS=({quoted}); COMP_CWORD={len(typed)}; _certile; "
    done = subprocess.run(
        [BASH, "--norc", "--noprofile", "-c", commands + "printf '%s\\n' \"${COMPREPLY[@]}\""], cwd=folder / "work",
        env={"PATH": str(folder / "bin")}, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert done.stderr == "", done.stderr
    return sorted(filter(None, done.stdout.split("\n")))


@needs_bash
def test_commands_and_options(bash: Path, words: Words) -> None:
    assert answers(bash, "") == sorted(words.commands)
    assert answers(bash, "so") == ["solve"]
    assert answers(bash, "solve", "--ma") == ["--machine"]
    assert answers(bash, "--ver") == ["--version"]
    assert {"--machine", "-m", "--json", "--help"} <= set(answers(bash, "solve", "lenet5", "-"))
    assert "--prove" not in answers(bash, "solve", "-")


@needs_bash
@pytest.mark.parametrize(("typed", "expected"), [
    (("solve", "lene"), ["lenet5"]),
    (("solve", "lenet5", "--machine", "nm"), ["nmp"]),
    (("solve", "lenet5", "-m", "nm"), ["nmp"]),
    (("solve", "lenet5", "--machine", "=", "nm"), ["nmp"]),  # --machine=nm as bash cuts it
    (("solve", "lenet5", "--machine=nm"), ["--machine=nmp"]),  # as a shell does that does not
    (("solve", "lenet5", "--problem", "fu"), ["fusion"]),
    (("solve", "-m", "nmp", "lene"), ["lenet5"]),  # a value is no place
    (("solve", "x", "--machine", "midap", "--engine", "hi"), ["hide"]),  # what the machine is for
    (("solve", "x", "--machine", "midap", "--problem", "hybrid", "-e", "pu"), ["pure-fusion"]),
    (("solve", "a@5ms,b@6ms", "-m", "hikey970", "-e", "ap"), ["apart"]),
    (("solve", "x", "-m", "nmp", "--compare", "greedy,tso"), ["greedy,tso-noburst"]),
    (("solve", "x", "-m", "nmp", "--objective", "by"), ["bytes"]),
    (("solve", "x", "-m", "nmp", "--pin", "parti"), ["partition"]),
    (("pareto", "x", "-m", "nmp", "--axes", "bytes,ti"), ["bytes,time"]),
    (("bench", "table4"), ["table42"]),
    (("list", "mach"), ["machines"]),
    (("schema", "net"), ["network"]),
    (("calibrate", "nmp", "tso"), ["tso_table2"]),
    (("completion", "z"), ["zsh"]),
    (("check", "pl"), ["plan.json"]),
    (("sweep", "sh"), ["show"]),
    (("sweep", "show", "pl"), ["plan.json"]),
    (("sweep", "show", "plan.json", "--ax"), ["--axes"]),
    (("library", "ch"), ["check"]),
    (("library", "check", "tiling-cor"), ["tiling-corners", *_corners()]),
    (("library", "check", "--solutions", "pl"), ["plan.json"]),
    (("compile", "mod"), ["model.onnx"]),
    (("solve", "x", "--machine", "my"), ["my npu.json"]),
    (("solve", "x", "--time-limit", ""), []),  # a number: nothing to offer
    (("solve", "x", "--pin", "T_C", "=", "1"), []),
    (("solve", "net.json", "--layer", ""), ["only"]),
    (("solve", "lenet5", "-m", "nmp", "-l", "c"), ["c1", "c3", "c5"]),
    (("solve", "m.onnx", "-l", ""), []),
])  # fmt: skip
def test_values(bash: Path, typed: tuple[str, ...], expected: list[str]) -> None:
    assert answers(bash, *typed) == expected


@needs_bash
def test_all_names_are_offered(bash: Path) -> None:
    assert set(list_networks()) <= set(answers(bash, "solve", ""))
    assert set(list_machines()) <= set(answers(bash, "solve", "x", "-m", ""))
    assert answers(bash, "solve", "x", "--problem", "") == sorted(PROBLEMS)
    for name, problem in PROBLEMS.items():
        offered = set(answers(bash, "solve", "x", "--problem", name, "--engine", ""))
        assert offered == {"auto", *problem.engines}
        assert set(answers(bash, "solve", "x", "--problem", name, "--objective", "")) == set(problem.measures)


def test_every_option_has_a_kind_or_is_a_text(words: Words) -> None:
    """An option that names something known is completed: a new command's too, if it is called alike."""
    known = {kind for kind, _ in words.kinds} | {"layers", "", "text"}
    kinds = {o.kind.rstrip("/+") for table in (words.options, words.arguments) for os in table.values() for o in os}
    assert kinds <= known
    machine = [o for os in words.options.values() for o in os if "--machine" in o.names]
    assert len(machine) >= 5
    assert {o.kind for o in machine} == {"machines/"}


@pytest.mark.parametrize("shell", SHELLS)
def test_command_prints_the_script(shell: str, words: Words, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert out.strip() == script(shell, words).strip()
    assert not re.search("@[A-Z]+@", out), "a place in the template is left unfilled"


def test_unknown_shell_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "expected bash, fish or zsh" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_the_script(shell: str, words: Words, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    path = tmp_path / "script"
    path.write_text(script(shell, words), encoding="utf-8")
    done = subprocess.run([program, "-n", str(path)], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    if shell == "fish":
        asked = f"source {path}; complete -C 'certile solve lenet5 --machine nm'"
        done = subprocess.run([program, "-c", asked], capture_output=True, text=True, timeout=30, check=False)
        assert done.stdout.split()[:1] == ["nmp"]
