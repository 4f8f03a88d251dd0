"""The command `certile completion`: scripts are templates beside this file, with the tables of words.py filled in."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

import instances
from solver.ask.names import unknown, version
from solver.cli.completion.words import SHELLS, Option, Words, words_of
from solver.show import console


def completion(
    context: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish: certile completion bash")],
) -> int:
    """Print a script that completes commands, options and names in your shell.

    It holds all names, so completing starts no Python; write it anew after an update. Save it where your shell
    looks: docs/commands.md says where that is. To try it in bash: source <(certile completion bash)
    """
    if shell not in SHELLS:
        raise unknown("shell", shell, SHELLS)
    console.emit(script(shell, words_of(context.find_root().command)).rstrip("\n"))
    return 0


_HERE = Path(__file__).resolve().parent


def script(shell: str, words: Words) -> str:
    """Return the script for a shell, one of `SHELLS`."""
    first = f"# Completion of certile {version()} for {shell}, as `certile completion {shell}` wrote it."
    if shell == "fish":
        return f"{first}\n{_fish(words)}"
    if shell == "zsh":
        # to be sourced: zsh reads the functions and the `complete` of bash
        begin = "(( $+functions[compdef] )) || { autoload -U +X compinit && compinit; }"
        return f"{first}\n{begin}\nautoload -U +X bashcompinit && bashcompinit\n{_bash(words)}"
    return f"{first}\n{_bash(words)}"


def _networks() -> str:
    """Return the folder of the bundled networks, quoted."""
    return shlex.quote(str(Path(instances.__file__).resolve().parent / "networks"))


def _filled(shell: str, tables: Mapping[str, Iterable[str]]) -> str:
    """Return the template of a shell with each table in the place of its line."""
    text = (_HERE / f"script.{shell}").read_text(encoding="utf-8")
    for name, lines in tables.items():
        text = text.replace(f"@{name}@", "\n".join(lines))
    return text.replace("@NETWORKS@", _networks())


# --- bash, and zsh by way of it --------------------------------------------------------------------------------------


def _bash(words: Words) -> str:
    kinds: dict[str, list[str]] = {}
    for command, options in words.options.items():
        for option in options:
            if option.kind:
                kinds.setdefault(option.kind, []).extend(f"{command}:{name}" for name in option.names)
    for command, arguments in words.arguments.items():
        for place, argument in enumerate(arguments, 1):
            kinds.setdefault(argument.kind, []).append(f"{command}:{place}")
    return _filled("bash", {
        "WORDS": [_case(f"{kind}:{problem or '*'}", " ".join(names)) for (kind, problem), names in _ordered(words)],
        "KINDS": [_case("|".join(places), kind) for kind, places in kinds.items()],
        "OPTIONS": [
            _case(command or "''", " ".join(name for option in options for name in option.names))
            for command, options in words.options.items()
        ],
        "PROBLEMS": [_case("|".join(machines), problem) for problem, machines in _machines(words).items()],
    })  # fmt: skip


def _case(pattern: str, said: str) -> str:
    return f"    {pattern}) echo {shlex.quote(said)} ;;"


def _ordered(words: Words) -> list[tuple[tuple[str, str], tuple[str, ...]]]:
    """Return the words of every kind, those of a problem before those of all."""
    return sorted(words.kinds.items(), key=lambda item: (item[0][0], not item[0][1], item[0][1]))


def _machines(words: Words) -> dict[str, list[str]]:
    """Return problem -> the bundled machines that are for it."""
    found: dict[str, list[str]] = {}
    for machine, problem in words.problems.items():
        found.setdefault(problem, []).append(machine)
    return found


# --- fish ------------------------------------------------------------------------------------------------------------


def _fish(words: Words) -> str:
    lines = [_complete("__fish_use_subcommand", f"-a {name}", about) for name, about in words.commands.items()]
    lines += [_complete("__fish_use_subcommand", _flags(option), option.about) for option in words.options[""]]
    for command in words.commands:
        seen = f"__fish_seen_subcommand_from {command}"
        for place, argument in enumerate(words.arguments[command], 1):
            if source := _source(argument.kind):
                # a place is that of its number; options and their values are not counted apart
                lines.append(_complete(seen, source, "" if place > 1 else argument.about))
        for option in words.options[command]:
            value = f" {'-x' if option.kind[-1:] != '/' else '-r'} {_source(option.kind)}" if option.kind else ""
            lines.append(_complete(seen, f"{_flags(option)}{value}", option.about))
    return _filled("fish", {
        "WORDS": [
            line for (kind, problem), names in _ordered(words)
            for line in _switch(f"{kind}:{problem or '*'}", " ".join(names))
        ],
        "PROBLEMS": [
            line for problem, machines in _machines(words).items() for line in _switch(" ".join(machines), problem)
        ],
        "COMPLETE": lines,
    })  # fmt: skip


def _switch(pattern: str, said: str) -> list[str]:
    return [f"        case {pattern if ' ' in pattern else _quoted(pattern)}", f"            echo {_quoted(said)}"]


def _complete(condition: str, what: str, about: str) -> str:
    said = f" -d {_quoted(about)}" if about else ""
    return f"complete -c certile -n {_quoted(condition)} {what}{said}"


def _flags(option: Option) -> str:
    long = [f"-l {name[2:]}" for name in option.names if name.startswith("--")]
    return " ".join(long + [f"-s {name[1:]}" for name in option.names if not name.startswith("--")])


def _source(kind: str) -> str:
    """Return where fish takes the words of a kind from."""
    bare = kind.rstrip("/+")
    files = "-F" if kind.endswith("/") else ""
    if bare in ("", "text"):
        return files
    if bare == "layers":
        return "-a '(__certile_layers)'"
    asked = f"__certile_asked {bare}"
    source = f"-a '(__fish_complete_list , \"{asked}\")'" if kind.endswith("+") else f"-a '({asked})'"
    return f"{source} {files}".rstrip()


def _quoted(text: str) -> str:
    """Return a text in single quotes as fish reads them."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
