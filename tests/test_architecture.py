"""The house keeps its shape: who imports whom, who prints, what is documented, how long a file is, what is packaged.

Everything is read from the source by `ast`; nothing is imported. Needs the source tree, so it is skipped where only
the wheel is installed.
"""

from __future__ import annotations

import ast
import fnmatch
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("instances", "hwmodels", "formulations", "solver")  # a room imports itself and the rooms before it

#: One process reads all files once.
pytestmark = pytest.mark.xdist_group("architecture")

if not (ROOT / "instances").is_dir():
    pytest.skip("no source tree beside the tests", allow_module_level=True)

# Which files may import a solver or a reader: the rest must work, and load fast, without it.
ALLOWED = {
    "ortools": ("formulations/*cp_sat*", "solver/search/*cp_sat.py"),
    "pulp": ("formulations/*milp*", "solver/search/*milp.py"),
    "highspy": ("formulations/*milp*", "solver/search/*milp.py"),
    "onnx": ("instances/onnx/*.py", "instances/tflite/*.py"),
    "tflite": ("instances/tflite/*.py",),
}
# Replay is the independent referee: it must share nothing with the closed forms that it checks.
REFEREE = ("hwmodels/*/replay.py", "hwmodels/*/replay/*.py")
REFEREE_MAY_IMPORT = (
    "hwmodels.schedule", "hwmodels.*.schedule", "hwmodels.outcome", "hwmodels.*.replay*",
)  # fmt: skip
# The adversary attacks the formulations: it asks them, by their parts, and shares nothing with how they search.
ADVERSARY_MAY_IMPORT = (
    "hwmodels.schedule", "hwmodels.*.schedule", "hwmodels.*.replay*", "hwmodels.nest.homes",
    "formulations.clock", "formulations.pins", "formulations.problem",
    "formulations.*.part", "formulations.*.problem", "formulations.*.formulation",
)  # fmt: skip
ADVERSARY_TOO = {  # what else, and why
    "hwmodels.nest.price.limits": "bytes of tensors, which are held against elements",
    "formulations.compulsory": "held against elements",
    "formulations.tiling.space": "bounds, which are held against nests",
    "formulations.banks.readings": "the stages that a network may be read as",
    "formulations.fusion.nests": "nests of layers by themselves, which tiling and joint attack",
    "formulations.applications.space": "an instance",
    "formulations.mapping.space": "an instance",
    "formulations.mapping.latency": "an instance of divided tasks, for the referee",
    "formulations.mesh.price": "names of decisions",
    "formulations.partial_engine.orders": "programs as text",
    "formulations.selection.frame": "an instance, and names of measures",
}
# These files ask nobody: they search and price, and import the first four alone.
ADVERSARY_ALONE = (
    "anneal boxes demands fusion_groups layers levels_nests levels_time moves networks nests pricing tiny".split()
)
MAY_PRINT = ("solver/cli/main.py", "solver/ask/progress.py", "solver/show/tables.py", "*/__main__.py")
MAY_EXIT = {
    "solver/cli/main.py": "the command line's exit codes",
    "solver/search/workers.py": "worker processes end themselves when their parent is gone",
}
MAX_LINES = 600
LONGER: dict[str, str] = {}  # file: why it is better as one


def sources() -> list[str]:
    """Every Python file of the rooms, relative to the root."""
    return sorted(str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


@cache
def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"), filename=name)


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


@cache
def imported(name: str) -> list[tuple[int, str]]:
    """Line and dotted name of everything that a file imports, wherever in the file; `from a import b` gives a.b."""
    return [*imports(name, ast.walk(tree(name)))]


def imports(name: str, nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """The same of some nodes of a file."""
    package = name.removesuffix(".py").split("/")[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def places(name: str) -> Iterator[tuple[int, str]]:
    """Line and module of every place (``package.module:name``) that a file says: it is imported from there later."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            module, colon, rest = node.value.partition(":")
            if colon and rest.isidentifier() and "." in module:
                yield node.lineno, module


def links(trees: Mapping[str, ast.Module]) -> nx.DiGraph[str]:
    """Which module imports which, with the line; imports inside functions, and those of types alone, count.

    A text that is the dotted name of a module, or of a name in it, counts too: `import_module` and the tables of
    `instances.late` (``package.module:name``) hide an import.
    Whoever imports a.b.c runs the `__init__` of a and of a.b, so these are imported as well, except by modules inside
    them, which run later; such a module is linked to its own package only if it imports names from there.
    """
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in trees}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for module, name in modules.items():
        nodes = list(ast.walk(trees[name]))
        found = list(imports(name, nodes))
        texts = [(n.lineno, n.value) for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        places = [(line, text.partition(":")[0]) for line, text in texts]
        found += [(line, place) for line, place in places if "." in place and place in modules]
        if module == "solver.problems.registry":  # a problem is found by its name
            found += [(1, view) for view in modules if view.startswith("solver.problems.")]
        for line, target in found:
            if target not in modules:  # a name in a module
                target = target.rpartition(".")[0]
            if target not in modules:
                continue
            parts = target.split(".")
            around = [".".join(parts[:n]) for n in range(1, len(parts))]
            for to in [target, *(package for package in around if not f"{module}.".startswith(f"{package}."))]:
                if to != module and not graph.has_edge(module, to):
                    graph.add_edge(module, to, where=f"{name}:{line}")
    return graph


def circles(graph: nx.DiGraph[str]) -> list[str]:
    """One circle of each group of modules that import each other: where each import is, and of what."""
    groups = [graph.subgraph(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    return sorted(
        "; ".join(f"{graph.edges[edge]['where']} imports {edge[1]}" for edge in nx.find_cycle(group))
        for group in groups
    )


def test_there_is_something_to_check() -> None:
    assert {name.split("/")[0] for name in sources()} == set(ROOMS)


@cache
def house() -> nx.DiGraph[str]:
    """Which module of the rooms imports which."""
    return links({name: tree(name) for name in sources()})


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_downwards(room: str) -> None:
    below = ROOMS[: ROOMS.index(room) + 1]
    wrong = [
        f"{name}:{line} imports {target}"
        for name in sources()
        if name.startswith(f"{room}/")
        for line, target in (*imported(name), *places(name))
        if target.split(".")[0] in (*ROOMS, "tests") and target.split(".")[0] not in below
    ]
    assert not wrong, "\n".join(wrong)


def test_no_import_circle() -> None:
    """No module needs itself: what two modules share is in a third below both, not behind an import in a function."""
    graph = house()
    assert graph.number_of_edges() > len(sources()), "where are the imports?"
    found = circles(graph)
    assert not found, "import circles:\n" + "\n".join(found)


CIRCLES = {
    "at the top": {"a/x.py": "from a.y import f", "a/y.py": "import a.x"},
    "inside a function": {"a/x.py": "from a.y import f", "a/y.py": "def f():\n    from a import x"},
    "only for the type checker": {"a/x.py": "from a.y import f", "a/y.py": "if TYPE_CHECKING:\n    import a.x"},
    "by a text": {"a/x.py": "from a.y import f", "a/y.py": "MAKERS = {'x': 'a.x'}"},
    "by a place": {"a/x.py": "from a.y import f", "a/y.py": "f = late('a.x:g')"},
    "through its own package": {"a/__init__.py": "from a.x import f", "a/x.py": "from a import g"},
    "through another package": {
        "a/b/__init__.py": "from a.b.y import f", "a/b/y.py": "from a.x import f", "a/x.py": "from a.b.z import f",
        "a/b/z.py": "",
    },
}  # fmt: skip
NO_CIRCLES = {
    "a neighbour in its own package": {
        "a/__init__.py": "from a.x import f", "a/x.py": "from a.y import g", "a/y.py": "",
    },
}  # fmt: skip


@pytest.mark.parametrize("files", CIRCLES.values(), ids=CIRCLES)
def test_circles_are_found_and_named(files: dict[str, str]) -> None:
    (found,) = circles(links({name: ast.parse(text) for name, text in files.items()}))
    assert "a/x.py:1 imports a" in found


@pytest.mark.parametrize("files", NO_CIRCLES.values(), ids=NO_CIRCLES)
def test_what_is_no_circle(files: dict[str, str]) -> None:
    assert not circles(links({name: ast.parse(text) for name, text in files.items()}))


@pytest.mark.parametrize("library", ALLOWED)
def test_libraries_stay_where_they_belong(library: str) -> None:
    wrong = [
        f"{name}:{line} imports {target}"
        for name in sources()
        if not matches(name, ALLOWED[library])
        for line, target in imported(name)
        if target.split(".")[0] == library
    ]
    assert not wrong, "\n".join(wrong)


def test_replay_shares_nothing_with_the_closed_forms() -> None:
    files = [name for name in sources() if matches(name, REFEREE)]
    assert files, "where is replay?"
    # `from hwmodels.schedule import Nest` arrives here as hwmodels.schedule.Nest
    patterns = REFEREE_MAY_IMPORT + tuple(f"{pattern}.*" for pattern in REFEREE_MAY_IMPORT)
    wrong = [
        f"{name}:{line} imports {target}"
        for name in files
        for line, target in imported(name)
        if target.split(".")[0] == "hwmodels" and not matches(target, patterns)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_adversary_shares_nothing_with_what_it_attacks() -> None:
    files = [path.stem for path in (ROOT / "tests" / "adversary").glob("*.py") if not path.name.startswith("test_")]
    assert set(files) >= set(ADVERSARY_ALONE)
    used, wrong = set[str](), []
    for stem in files:
        alone = stem in ADVERSARY_ALONE
        rooms = ("hwmodels", "formulations", "solver") if alone else ("hwmodels", "formulations")
        allowed = ADVERSARY_MAY_IMPORT[:4] if alone else (*ADVERSARY_MAY_IMPORT, *ADVERSARY_TOO)
        for line, target in imported(f"tests/adversary/{stem}.py"):
            module = target.rpartition(".")[0]
            used.add(module)
            if target.split(".")[0] in rooms and not matches(module, allowed):
                wrong.append(f"tests/adversary/{stem}.py:{line} imports {target}")
    assert not wrong, "\n".join(wrong)
    assert set(ADVERSARY_TOO) <= used, "no longer an exception"


def test_only_the_command_line_prints() -> None:
    wrong = [
        f"{name}:{node.lineno}"
        for name in sources()
        if not matches(name, MAY_PRINT)
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not wrong, "print outside the command line: " + ", ".join(wrong)


def public(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The functions and classes of a module, and the methods of its public classes, that a user may call."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            decorators = {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}
            if not decorators & {"overload", "typing.overload", "override", "typing.override"}:
                yield f"{prefix}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{prefix}{node.name}.")


def test_everything_public_has_a_docstring() -> None:
    wrong = []
    for name in sources():
        if not ast.get_docstring(tree(name)):
            wrong.append(f"{name}: the module")
        for full_name, node in public(tree(name).body):
            if not ast.get_docstring(node):
                wrong.append(f"{name}:{node.lineno} {full_name}")
    assert not wrong, "no docstring: " + ", ".join(wrong)


NAMED = re.compile(rf"(?<!`)`((?:{'|'.join(ROOMS)})(?:\.\w+)+)`(?!`)")  # `formulations.mesh.price`, in single backticks


def named(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of what the texts of a file (docstrings, meanings of fields) name of the rooms."""
    for text in ast.walk(node):
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            said = text.value.value
            yield from ((text.lineno + said.count("\n", 0, m.start()), m[1]) for m in NAMED.finditer(said))


@cache
def defined(name: str) -> set[str]:
    """Every name that a file defines, assigns or imports anywhere: functions, classes, attributes."""
    made = set[str]()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.alias):
            made.add(node.asname or node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            made.add(node.id if isinstance(node, ast.Name) else node.attr)
    return made


def exists(dotted: str, files: Mapping[str, str]) -> bool:
    """Whether it is a module, or something in a module: a class, say, or an attribute of a class."""
    parts = dotted.split(".")
    length = next(n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in files)
    return length == len(parts) or set(parts[length:]) <= defined(files[".".join(parts[:length])])


def test_docstrings_name_what_exists_and_not_their_own_module() -> None:
    """Whoever moves or merges modules mends what is said of them, and says by its name what is in the same file."""
    files = {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in sources()}
    wrong = []
    for module, name in files.items():
        for line, dotted in named(tree(name)):
            if dotted == module or (dotted.startswith(f"{module}.") and not name.endswith("__init__.py")):
                wrong.append(f"{name}:{line} names its own module: {dotted}")
            elif not exists(dotted, files):
                wrong.append(f"{name}:{line} names {dotted}, which is not there")
    assert not wrong, "\n".join(wrong)


def narrows(check: ast.expr) -> bool:
    """Whether an assert only tells the type checker what is known: `x is not None`, `isinstance(x, T)`, or both."""
    if isinstance(check, ast.BoolOp):
        return all(narrows(value) for value in check.values)
    if isinstance(check, ast.Compare):
        return isinstance(check.ops[0], ast.IsNot) and ast.unparse(check.comparators[0]) == "None"
    return isinstance(check, ast.Call) and ast.unparse(check.func) == "isinstance"


def test_no_assert_for_input() -> None:
    wrong = [
        f"{name}:{node.lineno}"
        for name in sources()
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Assert) and not narrows(node.test)
    ]
    assert not wrong, "assert vanishes under -O; raise instead: " + ", ".join(wrong)


def test_no_library_exits() -> None:
    wrong = [
        f"{name}:{node.lineno}"
        for name in sources()
        if name not in MAY_EXIT and not name.endswith("/__main__.py")
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"exit", "quit", "sys.exit", "os._exit"}
    ]
    assert not wrong, "a library does not end the process: " + ", ".join(wrong)


def test_files_are_short() -> None:
    lengths = {name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in sources()}
    wrong = [f"{name} has {lines}" for name, lines in lengths.items() if lines > MAX_LINES and name not in LONGER]
    assert not wrong, f"more than {MAX_LINES} lines: " + ", ".join(wrong)
    stale = [name for name in LONGER if lengths.get(name, 0) <= MAX_LINES]
    assert not stale, f"no longer an exception: {stale}"


def test_every_package_is_shipped() -> None:
    """What pyproject.toml finds is the tree, and every data file in the rooms matches a pattern there."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = {
        str(path.parent.relative_to(ROOT)).replace("/", ".") for r in ROOMS for path in (ROOT / r).rglob("__init__.py")
    }
    find = declared["packages"]["find"]
    assert set(find["include"]) == {text for room in ROOMS for text in (room, f"{room}.*")}
    assert find["namespaces"] is False, "a folder of data is no package"
    without = {name for name in sources() if str(Path(name).parent).replace("/", ".") not in found}
    assert not without, f"these have no __init__.py beside them: {without}"
    data = [
        (room, str(path.relative_to(ROOT / room)))
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    ]
    lost = [f"{room}/{name}" for room, name in data if not matches(name, tuple(declared["package-data"][room]))]
    assert not lost, f"not in package-data: {lost}"
    assert all((ROOT / room / "py.typed").exists() for room in ROOMS)


def texts() -> list[tuple[str, str]]:
    """Every text file that git tracks or would track."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("git or its data is not available")
    result = []
    for name in filter(None, listing.split("\0")):
        path = ROOT / name
        try:
            result.append((name, path.read_text(encoding="utf-8")))
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
    return result


def test_no_machine_paths_nor_package_hosts() -> None:
    """A clone on any machine reads the same; nothing says where it was written or what it was fetched from."""
    forbidden = [re.escape(f"{ROOT}/"), "/" + "home/[a-z]", "/" + "Users/[a-zA-Z]", "/" + "root/"]
    if len(ROOT.parts) > 2 and str(ROOT.parent) not in {"/tmp", "/var", "/home", "/opt", "/usr", "/srv", "/mnt"}:
        forbidden.append(re.escape(f"{ROOT.parent}/"))  # its neighbours
    forbidden += [
        r"\b" + host for host in ("py" + r"pi\.", "pythonhosted" + r"\.", "registry" + r"\.npm", "deb" + r"\.debian")
    ]
    forbidden += ["--(extra-)?index" + "-url", "--find" + "-links", "--trusted" + "-host"]
    pattern = re.compile("|".join(forbidden))
    wrong = [
        f"{name}:{number}: {found.group()}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if (found := pattern.search(line))
    ]
    assert not wrong, "\n".join(wrong)


# The floors of every room, lowest first. A file imports its own folder and lower floors, whenever it does so.
FLOORS = {
    "instances": (
        ("errors", "frozen", "jsonfile", "late", "problems", "validation"), ("machine/*",), ("network/*",),
        ("foreign/*", "tflite/*"), ("onnx/*",), ("load",),
        ("applications", "library_format", "measured"), ("zoo/*",),
    ),
    "hwmodels": (
        ("compiled", "outcome", "schedule", "transfer", "*/schedule"),
        ("banks/*", "board/*", "mesh/*", "nest/*", "partial_engine/*", "placement/*", "selection/*",
         "timeline/*"),
        ("hybrid/*", "joint/*", "levels/*"), ("fusion/*",),
    ),
    "formulations": (
        ("calibration", "clock", "compulsory", "pareto", "pins", "problem", "processes", "rows", "rows_cp_sat",
         "rows_milp"),
        ("banks/*", "homes/*", "levels/*", "mapping/*", "mesh/*", "partial_engine/*", "placement/*", "prefetch/*",
         "tiling/*"),
        ("applications/*", "fusion/*", "hybrid/*", "selection/*"),
    ),
    "solver": (
        ("ask/*",), ("plan/*",), ("search/*",), ("show/*",), ("problems/*",), ("calls/*",), ("uses/*",),
        ("cli/*", "__main__"),
    ),
}  # fmt: skip


def floor_of(name: str) -> tuple[int, str]:
    """The floor of a file, and the folder (or the file) that it is there; raises KeyError if it is on none."""
    room, inner = name.removesuffix(".py").split("/", 1)
    for floor, patterns in enumerate(FLOORS[room]):
        for pattern in patterns:
            if fnmatch.fnmatch(inner, pattern):
                return floor, pattern
    raise KeyError(f"{name} is on no floor of {room}")


def test_no_import_runs_upwards() -> None:
    """Inside a room too, whether at the top of a file, in a function, by a text, or for types alone."""
    graph = house()
    files = {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in sources()}
    wrong = []
    for module, target in graph.edges:
        room = module.split(".")[0]
        if target.split(".")[0] != room or room in (module, target) or files[target].endswith("__init__.py"):
            continue
        (here, mine), (there, other) = floor_of(files[module]), floor_of(files[target])
        if there > here or (there == here and mine.endswith("*") and mine != other):
            wrong.append(f"{graph.edges[module, target]['where']} imports {target}")
    assert not wrong, "\n".join(sorted(wrong))


def picture() -> str:
    """The folders of every room, each with those that it rests on (not those that these rest on in turn)."""
    graph = house()
    files = {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in sources()}
    rests: nx.DiGraph[str] = nx.DiGraph()
    rests.add_nodes_from("/".join(name.split("/")[:2]) for name in sources() if name.count("/") > 1)
    for module, target in graph.edges:
        ends = [files[one].split("/") for one in (module, target)]
        if all(len(parts) > 2 for parts in ends) and ends[0][0] == ends[1][0]:
            one, other = ("/".join(parts[:2]) for parts in ends)
            rests.add_edges_from([(one, other)] if one != other else [])
    least = nx.transitive_reduction(rests)
    lines = []
    for room in ROOMS:
        folders = [n for n in reversed(list(nx.lexicographical_topological_sort(least))) if n.startswith(f"{room}/")]
        lines += [f"{room}", *(f"   {n.split('/')[1]:<15}{_below(least, n)}".rstrip() for n in folders)]
    return "\n".join(lines)


def _below(graph: nx.DiGraph[str], folder: str) -> str:
    found = sorted(n.split("/")[1] for n in graph.successors(folder))
    return f"rests on {', '.join(found)}" if found else ""


def test_the_picture_of_the_house_is_made_from_the_imports() -> None:
    """`CONTRIBUTING.md` has it as `picture` draws it."""
    assert picture() in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), picture()
