"""Library files: what they hold, what is refused, and that each stands for itself."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from instances.errors import InputError
from instances.library_format import (
    Certificate,
    Family,
    Instance,
    MachineOf,
    Proof,
    Target,
    chosen,
    families,
    family,
    family_from_json,
    file_schema,
    instance,
    is_instance,
    library,
    list_instances,
    list_library,
    load_family,
)

ALL = tuple(library())
FOLDER = Path(str(resources.files("instances") / "library"))
#: At least so many of each problem.
LEAST = {
    "tiling": 70, "slicing": 30, "banks": 25, "mapping": 30, "applications": 12, "mesh": 20, "partial_engine": 15,
    "joint": 15, "hybrid": 12, "fusion": 30, "placement": 25, "selection": 20,
}  # fmt: skip


def test_there_are_300_instances_of_all_problems() -> None:
    assert len(ALL) >= 300
    assert len({one.name for one in ALL}) == len(ALL)
    for problem, number in LEAST.items():
        mine = [one for one in ALL if one.problem == problem]
        assert len(mine) >= number, problem
        statuses = {one.known.status for one in mine}
        assert {"OPTIMAL", "INFEASIBLE"} <= statuses, (problem, statuses)
    assert {one.difficulty for one in ALL} == {"easy", "medium", "hard", "open"}
    tags = {tag for one in ALL for tag in one.tags}
    assert {"infeasible", "pins", "ties", "prime", "uneven", "once-wrong", "tiny", "ample"} <= tags
    assert any(len(one.objectives) > 1 for one in ALL)


def test_the_files_are_small_and_follow_the_schema() -> None:
    files = sorted(FOLDER.glob("*.json"))
    assert sum(path.stat().st_size for path in files) < 5_000_000
    validator = jsonschema.Draft202012Validator(json.loads(file_schema("library")))
    for path in files:
        validator.validate(json.loads(path.read_text(encoding="utf-8")))


def test_what_is_written_is_read_again() -> None:
    for name in families():
        text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
        assert family(name).to_json() == text
        assert family_from_json(json.loads(text)) == family(name)


def test_every_instance_has_a_source_a_licence_and_a_seal() -> None:
    for one in ALL:
        assert one.source
        assert one.licence == "Apache-2.0"
        assert one.digest == one.seal, one.name
        assert one.family in families()


def test_most_optima_are_proven_by_two_engines() -> None:
    """Where only one could, it is said: `proven_by` has one name."""
    proven = [one for one in ALL if one.known.status != "FEASIBLE"]
    twice = [one for one in proven if len(one.certificate.proven_by) > 1]
    assert all(one.certificate.proven_by for one in proven)
    assert len(twice) > 0.8 * len(proven)


def test_targets_and_machines_are_as_their_digests_say() -> None:
    one = instance("tiling-corners/pad-5x5")
    assert one.target.load() == one.target.layer
    assert one.machine.load().ocm_bytes == 19
    edited = one.target.model_copy(update={"layer": one.target.layer and one.target.layer.model_copy(update={"m": 2})})
    with pytest.raises(InputError, match=r"target pad5x5: its digest is sha256:.*, the instance says sha256:"):
        edited.load()
    other = one.machine.model_copy(update={"set": {"ocm_bytes": 20}})
    with pytest.raises(InputError, match="machine scratchpad_24k: its digest is"):
        other.load()


@pytest.mark.parametrize(
    "name",
    [
        "tiling-corners/pad-5x5",
        "banks-midap/lenet5-bytes",
        "selection-profiles/tiny-period",
        "mesh-arrays/c3-tiny-dram",
    ],
)
def test_an_exported_instance_needs_nothing_else(name: str) -> None:
    one = instance(name)
    whole = one.whole()
    assert whole.digest == whole.seal
    assert whole.machine.name == ""
    assert not isinstance(whole.target.network, str)
    assert not isinstance(whole.target.variants, str)
    assert (whole.target.load(), whole.machine.load()) == (one.target.load(), one.machine.load())
    assert (whole.target.digest, whole.machine.digest) == (one.target.digest, one.machine.digest)


def test_names_find_instances() -> None:
    assert instance("library:tiling-corners/pad-5x5") is instance("tiling-corners/pad-5x5")
    assert is_instance("library:x/y")
    assert not is_instance("lenet5")
    with pytest.raises(InputError, match="did you mean tiling-corners/pad-5x5"):
        instance("tiling-corners/pad-5x6")
    with pytest.raises(InputError, match="names are FAMILY/NAME"):
        instance("lenet5")
    with pytest.raises(InputError, match="no family 'tiling-corner': did you mean tiling-corners"):
        family("tiling-corner")


def test_instances_are_chosen_by_name_problem_and_class() -> None:
    corners = chosen(["tiling-corners"])
    assert {one.family for one in corners} == {"tiling-corners"}
    assert len(chosen(["tiling-corners", "tiling-corners/pad-5x5"])) == len(corners)
    assert {one.problem for one in chosen(problem="mesh")} == {"mesh"}
    assert {one.difficulty for one in chosen(problem="tiling", difficulty="open")} == {"open"}
    assert chosen(["tiling-corners"], among=corners[:2]) == corners[:2]
    with pytest.raises(InputError, match="no instance 'mesh-arrays' in this file"):
        chosen(["mesh-arrays"], among=corners)
    with pytest.raises(InputError, match="class 'simple': expected easy, medium, hard, open"):
        chosen(difficulty="simple")
    with pytest.raises(InputError, match="no instance of problem mesh and of class open"):
        chosen(["tiling-corners"], problem="mesh", difficulty="open")


def test_lists_count_instances() -> None:
    assert sum(int(line.split(", ")[1].split()[0]) for line in list_library().values()) == len(ALL)
    assert list_instances("tiling")["tiling-corners/pad-5x5"] == "easy, OPTIMAL, bytes 79"


def _data(**more: object) -> dict[str, object]:
    text = (FOLDER / "tiling-corners.json").read_text(encoding="utf-8")
    return {**json.loads(text), **more}


def test_bad_files_are_refused(tmp_path: Path) -> None:
    rows = _data()["instances"]
    for data, said in (
        (_data(format="certile-library/2"), "field format is 'certile-library/2', expected 'certile-library/1'"),
        (_data(family="others"), "instance tiling-corners/pad-5x5: this is family others"),
        (_data(instances=[rows[0], rows[0]]), "instance tiling-corners/pad-5x5: the name stands twice"),
        (_data(instances=[{**rows[0], "speed": 1}]), "unknown field instances.0..speed|unknown field instances"),
        (_data(instances=[{**rows[0], "target": {"digest": rows[0]["target"]["digest"]}}]), "one of layer, network"),
        (_data(instances=[]), "at least 1 item"),
    ):
        with pytest.raises(InputError, match=said):
            family_from_json(data)
    path = tmp_path / "none.json"
    with pytest.raises(InputError, match="no such file"):
        load_family(path)
    path.write_text(family("tiling-corners").to_json(), encoding="utf-8")
    assert load_family(path) == family("tiling-corners")


def test_classes_follow_from_the_fastest_proof() -> None:
    def of(*rows: tuple[str, float], by: tuple[str, ...] = ()) -> str:
        proofs = tuple(Proof(engine=name, version="1", status="OPTIMAL", seconds=took) for name, took in rows)
        return Certificate(proofs=proofs, proven_by=by).difficulty

    assert of(("a", 0.9), ("b", 20.0), by=("a", "b")) == "easy"
    assert of(("a", 1.0), by=("a",)) == "medium"
    assert of(("a", 0.1), ("b", 10.0), by=("b",)) == "hard"
    assert of(("a", 0.1)) == "open"


def test_records_say_only_what_is_there() -> None:
    zero = "sha256:" + "0" * 64
    target = Target(digest=zero, network="lenet5")
    assert target.model_dump(mode="json") == {"digest": zero, "network": "lenet5"}
    machine = MachineOf(digest=zero, name="nmp", set={"ocm_bytes": 3})
    assert machine.settings == ("ocm_bytes=3",)
    assert isinstance(family("tiling-corners"), Family)
    assert isinstance(instance("tiling-corners/pad-5x5"), Instance)
