"""Run what README.md and docs/ tell a reader to run: every ```python and every ```console or ```bash block.

The blocks of one file run in one empty folder, the shell blocks first and in order (a later one may use the file that
an earlier one wrote), then the Python blocks.

* Python blocks of a file share one namespace and run as one script; a traceback has the line numbers of the document.
* In a ```console block the lines after "$ " are commands (a trailing backslash continues on the next line), the others
  are what they print and are not compared. In ```bash and ```sh blocks every line is code. Commands must succeed; one
  that ends with the comment "# exit 3" must end with that code.
* A block under the comment <!-- no-run --> is for reading only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHELLS = ("console", "bash", "sh", "shell")
TIMEOUT_S = 600


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the document where the text begins."""

    language: str
    text: str
    line: int


def blocks(document: str) -> list[Block]:
    """The blocks of a Markdown text that are to be run."""
    found: list[Block] = []
    language, start, skip, inside = "", 0, False, False
    text: list[str] = []
    for number, line in enumerate(document.splitlines(), 1):
        fence = re.match(r"\s*```\s*([\w+-]*)", line)
        if fence and not inside:
            inside, language, start, text = True, fence.group(1), number + 1, []
        elif fence:
            inside = False
            if not skip and language in ("python", *SHELLS):
                found.append(Block(language, "\n".join(text), start))
            skip = False
        elif inside:
            text.append(line)
        elif "<!-- no-run -->" in line:
            skip = True
        elif line.strip():
            skip = False  # the comment concerns only the block right below it
    return found


def commands(block: Block) -> list[tuple[str, int]]:
    """The commands of a shell block, each with the exit code that it must have."""
    if block.language == "console":
        text = re.sub(r"\\\n>? ?", " ", block.text)  # joined to one line each
        lines = [line.strip()[2:] for line in text.splitlines() if line.strip().startswith("$ ")]
    else:
        lines = [block.text]
    expected = [re.search(r"#\s*exit (\d+)\s*$", line) for line in lines]
    return [(line, int(code.group(1)) if code else 0) for line, code in zip(lines, expected, strict=True)]


def documents() -> list[str]:
    """The documents that hold something to run, relative to the root."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(p.relative_to(ROOT)) for p in paths if p.exists() and blocks(p.read_text(encoding="utf-8"))]


#: Seconds that the examples of the longest documents take about.
SECONDS = {
    "README.md": 110, "docs/tutorial.md": 55, "docs/joint.md": 37, "docs/why.md": 20, "docs/banks.md": 20,
    "docs/benchmarks.md": 19,
}  # fmt: skip
#: What a newcomer reads is tried before a change lands, whatever it takes; of the others those of so many seconds.
FIRST, MOST_S = ("README.md", "docs/tutorial.md"), 15


def marked(name: str) -> object:
    """A document as a parameter, by how long its examples take."""
    seconds = SECONDS.get(name, 10)
    return pytest.param(name, marks=pytest.mark.slow(seconds, every=name in FIRST or seconds <= MOST_S))


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    # The installed console script is meant, whether or not its environment is activated.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # What a document solves twice, in the shell and in Python, is kept, as for its readers.
    environment = os.environ | {"PATH": path, "COLUMNS": "120", "CERTILE_CACHE": str(folder / "cache")}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [marked(name) for name in documents() or ["README.md"]])
def test_examples_run(name: str, tmp_path: Path) -> None:
    document = ROOT / name
    if not document.exists():
        pytest.skip(f"no {name} beside the tests")
    source: list[str] = []  # Python so far, each line where the document has it
    for block in blocks(document.read_text(encoding="utf-8")):
        if block.language == "python":
            source += [""] * (block.line - 1 - len(source)) + block.text.splitlines()
            continue
        for command, code in commands(block):
            done = run([shutil.which("bash") or "sh", "-e", "-c", command], tmp_path)
            assert done.returncode == code, (
                f"{name}:{block.line}: {command}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
            )
    if source:
        script = tmp_path / f"{document.stem}_examples.py"
        # A main guard, because solve() may start processes that import this file again.
        body = "\n".join(source)
        script.write_text(
            f"source = {body!r}\nif __name__ == '__main__':\n    exec(compile(source, {name!r}, 'exec'))\n"
        )
        done = run([sys.executable, script.name], tmp_path)
        assert done.returncode == 0, f"{name}: its Python blocks\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"


EXAMPLE = """
Text.

```python
x = 1
```

<!-- no-run -->

```console
$ rm -rf everything
```

```console
$ echo one \\
>   two
one two
$ false  # exit 1
```

```json
{}
```
"""


def test_blocks_are_found() -> None:
    python, console = blocks(EXAMPLE)
    assert (python.language, python.text, python.line) == ("python", "x = 1", 5)  # line 1 is empty, the fence is line 4
    assert commands(console) == [("echo one    two", 0), ("false  # exit 1", 1)]
