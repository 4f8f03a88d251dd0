"""The documentation as a site: what its pages must say, the links between them, and the tools that build it.

Pages are read as text here; the tests marked slow build the site, follow every link and search it in a browser.
"""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import certile
from solver.problems.registry import PROBLEMS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
if not (ROOT / "formulations").is_dir():
    pytest.skip("no source tree beside the tests", allow_module_level=True)

PAGES = sorted(path.stem for path in DOCS.glob("*.md"))
#: What the page of every problem has, beside an example that is run.
SECTIONS = ("What OPTIMAL means", "Engines", "Files", "The model")


def text(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def prose(document: str) -> str:
    """A Markdown text without its fenced blocks."""
    return re.sub(r"^(`{3,}|~{3,}).*?^\1", "", document, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def tools() -> Iterator[dict[str, ModuleType]]:
    """The modules of docs/_ext that need no Sphinx."""
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        yield {name: importlib.import_module(name) for name in ("links", "gallery", "schemas")}
    finally:
        sys.path.remove(str(DOCS / "_ext"))


# --- what the pages say ----------------------------------------------------------------------------------------------


def test_every_page_is_in_the_navigation_once() -> None:
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", text("index"), re.MULTILINE | re.DOTALL)
    lines = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    named = [found.group(1) if (found := re.search(r"<(\w+)>$", line)) else line for line in lines]
    assert sorted(["index", *named]) == PAGES


def test_start_page_says_what_every_page_holds() -> None:
    assert set(re.findall(r"^\| \[(\w+)\.md\]\(\1\.md\) \| \S", text("index"), re.MULTILINE)) == set(PAGES) - {"index"}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_page_of_a_problem_has_its_sections(problem: str) -> None:
    page = text(problem)
    heads = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert [section for section in SECTIONS if section not in heads] == []
    assert re.search(r"^```(python|console|bash)$", page, re.MULTILINE), "an example that tests run"
    assert f'"problem": "{problem}"' in page
    assert f"[{problem}]({problem}.md)" in text("index"), "in the table of problems"


@pytest.mark.parametrize("problem", PROBLEMS)
def test_page_of_a_problem_shows_its_mathematics(problem: str) -> None:
    included = re.findall(r"^```\{literalinclude\} (\S+)$", text(problem), re.MULTILINE)
    models = [ast.get_docstring(ast.parse((DOCS / name).read_text(encoding="utf-8"))) or "" for name in included]
    assert models
    assert re.search(r"^(Sets|Parameters|Given|Frames)", models[0], re.MULTILINE)
    for part in (r"Variables", r"(Objectives?|Derived)", r"Constraints"):
        assert re.search(rf"^{part}", models[0], re.MULTILINE), part


@pytest.mark.parametrize("problem", PROBLEMS)
def test_page_of_a_problem_names_its_engines(problem: str) -> None:
    # slicing has those of tiling, which its page says
    page = text(problem) + (text("tiling") if problem == "slicing" else "")
    assert [name for name in PROBLEMS[problem].engines if f"`{name}`" not in page] == []


def commands() -> list[str]:
    import typer

    from solver.cli.main import app

    group: Any = typer.main.get_command(app)
    return list(group.commands)


def test_every_command_is_on_a_page() -> None:
    everything = "\n".join(text(page) for page in PAGES)
    assert [name for name in commands() if f"certile {name}" not in everything] == []


def test_every_suite_is_among_the_benchmarks() -> None:
    from solver.uses.bench import suites

    page = text("benchmarks")
    assert [name for name in suites() if not re.search(rf"`(certile bench )?{name}`", page)] == []


def test_everything_exported_is_in_the_reference() -> None:
    page = text("api")
    assert [name for name in certile.__all__ if f"certile.{name}" not in page] == []


def test_links_lead_somewhere_on_disk_too() -> None:
    """Links between files lead to a file and a heading: on disk, and for renderers that know nothing of Sphinx."""
    wrong = []
    for path in [*DOCS.glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(path.read_text(encoding="utf-8"))):
            name, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            page = (path.parent / name) if name else path
            if not page.is_file():
                wrong.append(f"{path.name}: {target}")
            elif anchor and anchor not in slugs(page):
                wrong.append(f"{path.name}: {target}: no such heading")
    assert wrong == []


def test_tables_have_as_many_cells_in_every_row() -> None:
    """A | inside a cell is written \\|: renderers drop what follows the last column."""
    wrong = []
    for path in DOCS.glob("*.md"):
        for table in re.findall(r"(?:^\|.*\n)+", prose(path.read_text(encoding="utf-8")), re.MULTILINE):
            cells = [len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()]
            wrong += [
                f"{path.name}: {row[:60]}" for row, n in zip(table.splitlines(), cells, strict=True) if n != cells[0]
            ]
    assert wrong == []


def slugs(page: Path) -> set[str]:
    """The anchors that renderers give to the headings of a page."""
    heads = re.findall(r"^#{1,4} (.+)$", prose(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


# --- the tools -------------------------------------------------------------------------------------------------------

GOOD = """<link rel="stylesheet" href="s.css"><script src="s.js?v=1"></script><h1 id="top">x</h1>
<a href="#top">x</a> <a href="b.html#there">x</a> <a href="https://example.org/x">x</a>
<img src="data:image/png;base64,AA">"""


def site(folder: Path, page: str, style: str = "") -> Path:
    for name, content in (("a.html", page), ("b.html", '<p id="there">'), ("s.css", style), ("s.js", "")):
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def test_good_links_pass(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    style = "a { background: url('data:image/png;base64,AA') } b { background: url(s.js) }"
    assert tools["links"].faults(site(tmp_path, GOOD, style)) == []
    assert tools["links"].main(str(tmp_path)) == 0


@pytest.mark.parametrize(("page", "fault"), [
    ('<a href="c.html">', "c.html: no such file"),
    ('<a href="b.html#here">', "b.html#here: no such anchor"),
    ('\n<a href="#here">', "a.html:2: #here: no such anchor"),
    ('<a href="/b.html">', "not relative"),
    ('<a href="javascript:x()">', "scheme javascript"),
    ('<a href="http://">', "not the address of a page"),
    ('<script src="https://cdn.example.org/x.js">', "fetched from another host"),
    ('<link rel="stylesheet" href="//cdn.example.org/x.css">', "fetched from another host"),
    ('<img src="https://example.org/x.png">', "fetched from another host"),
])  # fmt: skip
def test_faulty_links_are_named(tools: dict[str, ModuleType], tmp_path: Path, page: str, fault: str) -> None:
    (found,) = tools["links"].faults(site(tmp_path, page))
    assert fault in found
    assert tools["links"].main(str(tmp_path)) == 1


@pytest.mark.parametrize(("style", "fault"), [
    ("@import 'https://fonts.example.org/x';", "fetched from another host"),
    ("a { background: url(gone.png) }", "no such file"),
])  # fmt: skip
def test_faulty_styles_are_named(tools: dict[str, ModuleType], tmp_path: Path, style: str, fault: str) -> None:
    (found,) = tools["links"].faults(site(tmp_path, GOOD, style))
    assert fault in found


def test_no_page_is_a_fault(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    assert tools["links"].main(str(tmp_path)) == 1


def test_schemas_hold_every_key(tools: dict[str, ModuleType]) -> None:
    import json

    made = tools["schemas"].markdown()
    machine = set(json.loads(tools["schemas"].file_schema("machine"))["$defs"]) | {"Machine"}
    for name, schema in tools["schemas"].plan_schemas().items():
        records = [schema, *(record for name, record in schema["$defs"].items() if name not in machine)]
        keys = {key for record in records for key in record.get("properties", {})}
        assert [key for key in keys if f"| `{key}` |" not in made] == [], name
    assert "| `bound` | integer or null | required | No plan has a smaller first objective. |" in made
    links = set(re.findall(r"\(#(schema-\w[\w-]*)\)", made))
    assert links <= set(re.findall(r"^\((schema-[\w-]+)\)=$", made, re.MULTILINE))


def test_gallery_without_reports_says_so(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    assert "has no command `report`" in tools["gallery"].markdown(tmp_path / "reports", ["solve", "check"])
    assert not (tmp_path / "reports").exists()


def test_gallery_names_what_fails(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    case = tools["gallery"].Case("x", "A network that is not there", ("lenet6", "--machine", "nmp"))
    made = tools["gallery"].markdown(tmp_path / "reports", ["report"], [case])
    assert "$ certile solve lenet6 --machine nmp -o x.json" in made
    assert "No report was made: `certile solve` ended with 2" in made


# --- the built site --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without its gallery."""
    pytest.importorskip("sphinx")
    pytest.importorskip("furo")
    from sphinx.cmd.build import main as sphinx

    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-b", "html", "-D", "certile_gallery=0", str(DOCS), str(folder)]
    before = list(sys.path), set(sys.modules)
    assert sphinx(options) == 0
    sys.path[:] = before[0]
    return folder


@pytest.mark.slow(30)
@pytest.mark.filterwarnings("ignore")  # of Sphinx and its extensions
@pytest.mark.xdist_group("site")
def test_site_builds_and_every_link_leads_somewhere(built: Path, tools: dict[str, ModuleType]) -> None:
    assert tools["links"].faults(built) == []
    assert {path.stem for path in built.glob("*.html")} == {*PAGES, "search"}
    pages = {page: (built / f"{page}.html").read_text(encoding="utf-8") for page in PAGES}
    assert all("Variables" in pages[problem] for problem in PROBLEMS)
    assert "--time-limit" in pages["commands"]
    assert 'id="schema-partplan"' in pages["schemas"]
    assert 'id="certile.size_engine"' in pages["api"]
    assert 'href="contributing.html"><span class="xref myst">CONTRIBUTING.md' in pages["changelog"]
    assert ">The nest</span></a>" in pages["show"], "a link that says only a file shows its title"


@pytest.mark.slow(10)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.xdist_group("site")
def test_search_works_from_a_disk_and_pages_fit_a_phone(built: Path) -> None:
    browsers = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no browser here")
    with browsers.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request", lambda request: None if request.url.startswith(("file:", "data:")) else said.append(request.url)
        )
        page.goto(f"file://{built}/search.html?q=boustrophedon")
        page.wait_for_selector("#search-results li")
        assert "Glossary" in page.inner_text("#search-results")
        for name in ("index", "tiling", "schemas", "machines", "api"):
            page.goto(f"file://{built}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, f"{name} scrolls sideways"
        browser.close()
    assert said == []
