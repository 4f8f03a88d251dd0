"""Files that somebody or something has changed: every command that reads one says one line, and never a traceback.

Each kind of file (`KINDS`) has a few sound ones and the commands that read it. A mutation leaves out, doubles, retypes,
overflows, renames or swaps what stands in a file, or cuts and flips its bytes. A command then has to end with one of
the documented exit codes but 6 (a defect), to say nothing on stderr but lines of its own, and to print no character
that a terminal would obey.

``python -m tests.fuzz --number 5000 --seed 1 [--kind plan]`` tries so many, and prints those that fail.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import solver.uses.sweep
from instances.jsonfile import bundled, obeyed
from instances.library_format import list_instances
from instances.load import dump_network
from solver.cli.main import main
from tests.golden_plans import CASES, FIRST, SMALL
from tests.mutations import mutated

Json = Any
ROOT = Path(__file__).resolve().parents[1]
#: What a command may end with: 6 is a defect, 7 a contradiction that `bench library` reports.
EXPECTED = frozenset({*range(6), 7})
#: Seconds after which a command hangs; they are asked for plans of a second at most.
_PATIENCE_S = 60
_LIMIT = ("--time-limit", "1")
# ---- sound files ----------------------------------------------------------------------------------------------------

#: By name: what is in it, and the commands that read it: ``{}`` is the file, ``{dir}`` its folder, ``{out}`` is new.
Files = dict[str, tuple[bytes, tuple[tuple[str, ...], ...]]]
_PLAN = (
    ("check", "{}"), ("show", "{}"), ("show", "{}", "--all"), ("why", "{}", *_LIMIT), ("report", "{}"),
    ("report", "{}", "-o", "{out}.html"), ("check", "{}", "--prove", *_LIMIT), ("emit-c", "{}", "-o", "{out}"),
    ("export-mapping", "{}", "--format", "timeloop"), ("export-mapping", "{}", "--format", "text"),
    ("price", "lenet5", "-m", "scratchpad_24k", "--mapping", "{}", "--alone"),
    ("solve", "{}", "--problem", "placement", *_LIMIT),
)  # fmt: skip


def plans() -> Files:
    """A small plan of every problem, and one that has none."""
    wanted = [*FIRST.values()]
    wanted += [case for case in CASES if (case.problem, case.name) in (("tiling", "conflict"), ("fusion", "conflict"))]
    return {f"{case.problem}-{case.name[:8]}.json": (case.solve().to_json().encode(), _PLAN) for case in wanted}


def fronts() -> Files:
    """A front, as ``pareto -o`` writes it."""
    from solver import pareto

    found = pareto(SMALL, "scratchpad_24k", axes="bytes,ocm", settings=["ocm_bytes=100"], pins=["holds=uniform"])
    return {"front.json": (found.to_json().encode(), (("report", "{}", "-o", "{out}.html"), ("show", "{}")))}


#: A network for each bundled machine, small enough to be planned in a moment.
_FOR = {"midap": "lenet5", "galaxy_s9": "lenet5", "hikey970": "lenet5", "jetson_tx2": "tiny_yolo_tx2"}


def machines() -> Files:
    """Machines of every problem."""
    names = ("scratchpad_24k", "nmp", "u256_flash", "midap", "galaxy_s9", "hikey970", "vectormesh_128", "tpu_128",
             "partial_cnn_16", "scratchpad_768k", "jetson_tx2", "zynq7020",
             "gap9_levels", "gemmini_levels")  # fmt: skip
    found: Files = {}
    for name in names:
        text = bundled("machines", ".json")[name].read_bytes()
        net = _FOR.get(name, "{dir}/small.json")
        asked = [("solve", net, "-m", "{}", *_LIMIT, "-j", "1"), ("explain", net, "-m", "{}")]
        if name == "scratchpad_768k":
            asked += [("solve", net, "-m", "{}", "--problem", p, *_LIMIT) for p in ("joint", "fusion")]
        if name == "scratchpad_24k":
            asked += [
                ("calibrate", "{}", "{dir}/measured.csv", "--rounds", "1", "-j", "1"),
                ("pareto", net, "-m", "{}", *_LIMIT),
            ]
        if name == "galaxy_s9":
            asked += [("solve", "lenet5@20ms,lenet5@30ms", "-m", "{}", *_LIMIT)]
        found[f"{name}.json"] = text, tuple(asked)
    return found


def networks() -> Files:
    """A network as `import` writes it, and a bundled one."""
    on = [("scratchpad_64k", "tiling"), ("midap", "banks"), ("scratchpad_768k", "fusion"), ("galaxy_s9", "mapping")]
    asked = [("solve", "{}", "-m", m, "--problem", p, *_LIMIT, "-j", "1") for m, p in on]
    asked += [("explain", "{}", "-m", "nmp"), ("variants", "{}", "-m", "galaxy_s9", "-o", "{out}.csv")]
    texts = {name: bundled("networks", ".json")[name].read_bytes() for name in ("lenet5", "espcn")}
    with tempfile.TemporaryDirectory() as folder:
        dump_network(SMALL, Path(folder) / "small.json")
        texts["small"] = (Path(folder) / "small.json").read_bytes()
    return {f"{name}.json": (text, tuple(asked)) for name, text in texts.items()}


def libraries() -> Files:
    """Families of the library, cut down to their first instances."""
    found: Files = {}
    for name in ("placement-corners", "tiling-corners", "mapping-boards", "fusion-chains"):
        data = json.loads(bundled("library", ".json")[name].read_bytes())
        data["instances"] = data["instances"][:2]
        asked = (("library", "check", "--file", "{}"), ("library", "check", "--solutions", "{}"))
        found[f"{name}.json"] = json.dumps(data, indent=1).encode(), asked
    one = next(iter(list_instances("placement")))
    rows = f"instance,value,seconds,status\n{one},12,0.5,OPTIMAL\n".encode()
    found["results.csv"] = rows, (("bench", "library", "--only", "placement-corners", "--results", "{}"),)
    return found


#: Measured rows that take a moment.
_ROWS = b"name,network,layer,pins,engine,us\na,lenet5,c1,T_M<=4,greedy,500\nb,lenet5,f6,,greedy,900\n"


def tables() -> Files:
    """CSV files: buffers, variants, measured times, measured rows."""
    buffers = b"id,lower,upper,size,alignment,gaps,offset\na,0,3,4,1,,\nb,2,9,64,16,4-6 7-8@0:16,\nc,1,2,8,4,,0\n"
    times = b"task,1,2,gpu\n" + b"".join(
        f"{t},100,60,40\n".encode() for t in ("c1", "s2", "c3", "s4", "c5", "f6", "output")
    )
    place, select = ("solve", "{}", "-m", "scratchpad_24k", *_LIMIT), ("solve", "{}", *_LIMIT)
    return {
        "buffers.csv": (buffers, (place,)),
        "times.csv": (times, (("solve", "lenet5", "-m", "galaxy_s9", "--profile", "{}", *_LIMIT),)),
        "variants.csv": (bundled("variant_profiles", ".csv")["tiny_yolo_tx2"].read_bytes(), (select,)),
        "rows.csv": (_ROWS, (("calibrate", "nmp", "{}", "--rounds", "1", "-j", "1"),)),
        "variants.json": (bundled("variant_profiles", ".json")["tiny_yolo_tx2"].read_bytes(), (select,)),
    }  # fmt: skip


def specs() -> Files:
    """What sweeps ask."""
    folder = Path(solver.uses.sweep.__file__).with_name("examples")
    asked = (("sweep", "{}", "--dry-run", "-j", "1", "-o", "{out}.sqlite"),)
    small = b"networks: [lenet5]\nlayers: [f6]\nmachines: [nmp]\nset: {ocm_bytes: [512, {from: 1, to: 9, step: 4}]}\n"
    return {"grids.yaml": ((folder / "grids.yaml").read_bytes(), asked), "small.yaml": (small, asked)}


def sweeps() -> Files:
    """A file of results."""
    from solver.uses.sweep.run import sweep

    spec = {"networks": ["lenet5"], "layers": ["f6"], "machines": ["scratchpad_64k"], "set": {"ocm_bytes": [512, 1024]}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.sqlite"
        sweep(spec, path, jobs=1)
        data = path.read_bytes()
    asked = (
        ("sweep", "show", "{}"), ("sweep", "table", "{}"), ("sweep", "plan", "{}", "-w", "ocm_bytes=512"),
        ("report", "{}", "-o", "{out}.html"), ("sweep", "show", "{}", "--csv"), ("sweep", "show", "{}", "--json"),
    )  # fmt: skip
    return {"a.sqlite": (data, asked)}


def mappings() -> Files:
    """Mappings of other tools."""
    folder = ROOT / "tests" / "data" / "mappings"
    loop = folder / "timeloop"
    timeloop = ("price", "{dir}/conv1d_oc.problem.yaml", "-m", "scratchpad_24k", "--mapping", "{}", "--alone")
    read = ("import-mapping", *timeloop[1:-1])
    names = ("conv1d_oc.map.yaml", "conv1d_oc_tiled.map.yaml", "eyeriss_gating.map.yaml")
    found: Files = {name: ((loop / name).read_bytes(), (timeloop, read)) for name in names}
    problem = (loop / "conv1d_oc.problem.yaml").read_bytes()
    found["conv1d_oc.problem.yaml"] = (
        problem,
        (
            ("solve", "{}", "-m", "scratchpad_24k", *_LIMIT),
            ("price", "{}", "-m", "scratchpad_24k", "--mapping", "W | m 4 | IN | OUT", "--alone"),
        ),
    )
    zigzag = folder / "zigzag"
    for name in ("gemm_layer.yaml", "gemm_l1.yaml", "tpu_like.yaml"):
        found[name] = (
            (zigzag / name).read_bytes(),
            (
                ("price", "{}", "-m", "scratchpad_24k", "--mapping", "W | m 4 | IN | OUT", "--alone"),
                ("price", "{dir}/gemm_layer.yaml", "-m", "scratchpad_24k", "--mapping", "{}", "--alone"),
            ),
        )
    found["mobilenet.json"] = (
        (folder / "dory" / "mobilenet.json").read_bytes(),
        (("price", "mobilenet_v1", "-m", "scratchpad_64k", "--mapping", "{}", "--alone"),),
    )
    return found


def models() -> Files:
    """ONNX files."""
    names = ("espcn_ts", "lstm_ts", "resnet_qdq", "unet_nearest_ts", "swin_dynamo", "einsum_dynamo", "grid_ts")
    asked = (("import", "{}", "-o", "{out}.json"), ("solve", "{}", "-m", "scratchpad_768k", *_LIMIT, "-j", "1"),
             ("compile", "{}", "-m", "scratchpad_768k", "-o", "{out}", *_LIMIT))  # fmt: skip
    return {f"{name}.onnx": ((ROOT / "tests" / "data" / "onnx" / f"{name}.onnx").read_bytes(), asked) for name in names}


KINDS: dict[str, Callable[[], Files]] = {
    "plan": plans, "front": fronts, "machine": machines, "network": networks, "library": libraries, "table": tables,
    "spec": specs, "sweep": sweeps, "mapping": mappings, "model": models,
}  # fmt: skip


# ---- what commands say ----------------------------------------------------------------------------------------------


class Hung(BaseException):
    """A command that does not end."""


@dataclass(frozen=True)
class Said:
    """What a command did."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def fault(self) -> str:
        """What is wrong with that; empty if nothing is."""
        if self.code not in EXPECTED:
            last = self.err.strip().split("\n")[-1:]
            places = re.findall(
                r'File "(?:[^"]*/)?((?:solver|instances|hwmodels|formulations)/[^"]*)", line (\d+)', self.err
            )
            return f"exit code {self.code}: {last} {places[-1:]}"
        lines = [line for line in self.err.split("\n") if line]
        if wrong := [line for line in lines if not line.startswith("certile: ")]:
            return f"stderr: {wrong[0]!r}"
        if self.code == 2 and sum(not re.match("certile: (warning|note)", line) for line in lines) != 1:
            return f"exit code 2 with {self.err!r}"
        found = obeyed(self.out + self.err, "\n")
        return f"prints {found!r}" if found else ""


def said(arguments: Sequence[str], patience_s: float = _PATIENCE_S) -> Said:
    """Run a command in this process; seconds are of its processor, as others may be at work beside it."""

    def hung(_number: int, _frame: FrameType | None) -> None:
        raise Hung

    out, err, start = io.StringIO(), io.StringIO(), time.process_time()
    before = signal.signal(signal.SIGPROF, hung)
    signal.setitimer(signal.ITIMER_PROF, patience_s)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    except Hung:
        code = -1
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return Said(code, out.getvalue(), err.getvalue(), time.process_time() - start)


def cases(kinds: Sequence[str], seed: int) -> Iterator[tuple[str, bytes, tuple[str, ...]]]:
    """Yield changed files for ever, kind by kind in turn: name, contents, and a command."""
    rng, sound = random.Random(seed), {kind: KINDS[kind]() for kind in kinds}
    while True:
        for files in sound.values():
            name = rng.choice(sorted(files))
            data, commands = files[name]
            yield name, mutated(name, data, rng), rng.choice(commands)


def tried(folder: Path, name: str, data: bytes, command: tuple[str, ...]) -> Said:
    """Write a file, and have a command read it."""
    for file in folder.glob("out*"):
        if file.is_file():
            file.unlink()
    path = folder / name
    path.write_bytes(data)
    out = tempfile.mkdtemp(dir=folder, prefix="new")
    os.rmdir(out)
    return said([part.replace("{}", str(path)).replace("{out}", out).replace("{dir}", str(folder)) for part in command])


def beside(folder: Path) -> None:
    """Write what commands need beside the changed file."""
    dump_network(SMALL, folder / "small.json")
    (folder / "measured.csv").write_bytes(_ROWS)
    for part in ("timeloop/conv1d_oc.problem.yaml", "zigzag/gemm_layer.yaml"):
        file = ROOT / "tests" / "data" / "mappings" / part
        (folder / file.name).write_bytes(file.read_bytes())


def run(number: int, seed: int, kinds: Sequence[str] = tuple(KINDS), keep: Path | None = None) -> list[str]:
    """Try so many changed files; return a line for each that fails, and keep them in a folder."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k, (file, data, command) in zip(range(number), cases(kinds, seed), strict=False):
            beside(folder)
            answer = tried(folder, file, data, command)
            slow = f"took {answer.seconds:.0f} s" if answer.seconds > _PATIENCE_S / 3 else ""
            if fault := answer.fault or slow:
                found.append(f"{seed}.{k} {file}: {' '.join(command)}: {fault}")
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{seed}_{k}_{file}").write_bytes(data)
                    print(found[-1], flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS))
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "certile_fuzz")
    given = parser.parse_args()
    os.environ["CERTILE_CACHE"] = "off"
    sys.exit(1 if run(given.number, given.seed, given.kind or tuple(KINDS), given.keep) else 0)
