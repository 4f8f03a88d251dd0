"""The command `certile completion`."""

from __future__ import annotations

from typing import Annotated

import typer

from solver.ask import options
from solver.cli.completion.scripts import script
from solver.cli.completion.words import SHELLS, words_of
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
        raise options.unknown("shell", shell, SHELLS)
    console.emit(script(shell, words_of(context.find_root().command)).rstrip("\n"))
    return 0
