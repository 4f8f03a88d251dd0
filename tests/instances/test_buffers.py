"""Files of buffers: what is read, what is refused in one line, what is written."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.errors import InputError
from instances.measured import Profile, list_measured, load_measured, parse_layer
from instances.network.buffers import (
    Buffer,
    Buffers,
    Extent,
    Gap,
    buffers_from_csv,
    buffers_to_csv,
    load_buffers,
    together,
)


def read(text: str) -> Buffers:
    return buffers_from_csv(text, "few")


def test_an_upper_time_is_exclusive_and_an_end_inclusive() -> None:
    """MiniMalloc's converter: heads `start,end` are the older format, with the last time in place of the one after."""
    new, old = read("id,lower,upper,size\na,0,3,4\n"), read("buffer_id,start,end,size\na,0,2,4\n")
    assert new == old
    assert new.buffers[0] == Buffer(name="a", lower=0, upper=3, size=4)


def test_gaps_leave_extents() -> None:
    """From 2 to 9 with nothing at 4 and 5, and bytes 0 to 15 of 64 at 7."""
    (buffer,) = read("id,lower,upper,size,gaps\nb,2,9,64,4-6 7-8@0:16\n").buffers
    assert list(buffer.extents()) == [
        Extent(2, 4, 0, 64), Extent(6, 7, 0, 64), Extent(7, 8, 0, 16), Extent(8, 9, 0, 64),
    ]  # fmt: skip
    assert read("id,start,end,size,gaps\nb,2,8,64,4-5 7-7@0:16\n").buffers == (buffer,)
    (meeting,) = read("id,lower,upper,size,hint,gaps\nb,2,9,64,-1,2-4 4-6@0:16\n").buffers  # -1 is no hint
    assert (meeting.hint, len([*meeting.extents()])) == (None, 2)


def test_what_two_take_together() -> None:
    one = Buffer(name="a", lower=0, upper=4, size=8, gaps=(Gap(lower=2, upper=4, window=(4, 8)),))
    assert together(one, Buffer(name="b", lower=1, upper=3, size=2)) == [(0, 8, 0, 2), (4, 8, 0, 2)]
    behind = Buffer(name="c", lower=4, upper=5, size=2)
    assert together(one, behind) == together(behind, one) == []


def test_all_columns_go_both_ways() -> None:
    text = (
        "id,lower,upper,size,alignment,hint,gaps,memories,spill,conflicts,offset\n"
        "a,0,3,4,2,8,1-2,fast slow,12,b,\n"
        "b,2,9,6,1,,,,,,10\n"
    )
    few = read(text)
    assert few.conflicts == (("a", "b"),)
    assert (few.buffers[0].memories, few.buffers[0].spill, few.buffers[1].offset) == (("fast", "slow"), 12, 10)
    assert buffers_to_csv(few) == text


def test_places_are_offsets() -> None:
    few = read("id,lower,upper,size\na,0,3,4\nb,2,9,6\nc,2,9,6\n")
    said = buffers_to_csv(few, {"a": ("one", 6), "b": ("one", 0)})
    assert said == "id,lower,upper,size,offset\na,0,3,4,6\nb,2,9,6,0\nc,2,9,6,\n"
    two = buffers_to_csv(few, {"a": ("one", 6), "b": ("two", 0), "c": ("one", 0)})
    assert two.splitlines()[0] == "id,lower,upper,size,offset,memory"
    assert read(two).buffers[1].memories == ("two",)  # where it has to lie, if it is read again


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("id,lower,upper\n", "column size is missing: id, lower, upper, size are needed"),
        ("id,lower,upper,size,size\n", "column 'size' stands twice"),
        ("id,lower,upper,size,aligment\n", "column 'aligment' is not known; did you mean alignment"),
        ("id,lower,upper,size\na,0,3\n", "line 2: 3 cells, the heads are 4"),
        ("id,lower,upper,size\na,0,3,x\n", "line 2, column size: a whole number is expected, got 'x'"),
        ("id,lower,upper,size\na,3,3,1\n", "buffer a: lower 3 has to be before upper 3"),
        ("id,lower,upper,size\na,0,3,0\n", "size"),
        ("id,lower,upper,size\na,0,3,1\na,1,2,1\n", "buffer a: the name stands 2 times"),
        ("id,lower,upper,size,gaps\na,0,3,1,1:2\n", "line 2, column gaps: 4-6 or 4-6@0:16 is expected, got '1:2'"),
        ("id,lower,upper,size,gaps\na,0,3,1,1-4\n", "gap 1-4: it is empty, or beyond the buffer"),
        ("id,lower,upper,size,gaps\na,0,3,4,1-2@0:5\n", "gap 1-2@0:5: it is empty, or beyond the buffer"),
        ("id,lower,upper,size,gaps\na,0,3,4,0-2 1-3\n", "two gaps are at one time"),
        ("id,lower,upper,size,gaps\na,0,3,4,0-3\n", "its gaps leave nothing of it"),
        ("id,lower,upper,size,gaps\na,0,9,4,1-4 3-6\n", "two gaps are at one time"),
        ("id,lower,upper,size,memories\na,0,3,4,fast fast\n", "memories fast, fast: one stands twice"),
        ("id,lower,upper,size,alignment,offset\na,0,3,4,4,6\n", "offset 6 is no multiple of alignment 4"),
        ("id,lower,upper,size,conflicts\na,0,3,4,b\n", "conflict a, b: two buffers are needed"),
    ],
)
def test_one_line_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read(text)
    assert said in str(error.value)


def test_a_json_file_has_memories_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "few.json"
    path.write_text(
        '{"format": "certile-buffers/1", "name": "few", "memories": [{"name": "fast", "bytes": 16, "bank_bytes": 4}],'
        ' "buffers": [{"name": "a", "lower": 0, "upper": 3, "size": 4, "memories": ["fast"]}]}'
    )
    assert load_buffers(path).memories[0].bank_bytes == 4
    path.write_text(path.read_text().replace('["fast"]', '["slow"]'))
    with pytest.raises(InputError, match="buffer a: memory slow: there is fast"):
        load_buffers(path)
    text = path.read_text()
    path.write_text(text.replace('"bank_bytes": 4}', '"bank_bytes": 4}, {"name": "fast", "bytes": 3}'))
    with pytest.raises(InputError, match="memories fast, fast: a name stands twice"):
        load_buffers(path)
    path.write_text(text.replace("buffers/1", "buffers/2"))
    with pytest.raises(InputError, match="field format is 'certile-buffers/2', this version reads 'certile-buffers/1'"):
        load_buffers(path)


# ---- Measured rows: what is read, and one clear line for every bad cell ----------------------------------------------


def rows(tmp_path: Path, text: str):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    return load_measured(path)


def test_rows_are_read_exactly(tmp_path: Path) -> None:
    table = rows(
        tmp_path, "# mine\n\nnetwork,layer,pins,measured,unit\nlenet5,,,1.25,ms\nlenet5,conv1,T_C=4; T_R=2,7,ticks\n"
    )
    first, second = table.rows
    assert second.group == "lenet5"  # rows of a network are left out together, of whichever layer
    assert (first.value, first.unit, first.line, first.group, first.name) == (
        Fraction(5, 4),
        "ms",
        4,
        "lenet5",
        "lenet5",
    )
    assert (second.pins, second.layer, second.name) == (("T_C=4", "T_R=2"), "conv1", "lenet5 conv1 T_C=4;T_R=2")
    assert table.source == "rows.csv"
    assert table.digest.startswith("sha256:")


def test_a_head_may_be_the_unit(tmp_path: Path) -> None:
    assert rows(tmp_path, "network,us\nlenet5,3e2\n").rows[0].value == 300


def test_paths_are_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.json").write_text("{}")
    monkeypatch.chdir("/")
    assert rows(tmp_path, "network,us\nnet.json,3\n").rows[0].network == str(tmp_path / "net.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("# nothing\n", "no line of heads"),
        ("network,us\n", "no row under the heads"),
        ("network,time\nlenet5,3\n", "line 1: unknown head 'time'"),
        ("netwrk,us\nlenet5,3\n", "did you mean network"),
        ("network,us,us\nlenet5,3,3\n", "head us stands twice"),
        ("network,measured\nlenet5,3\n", "give heads measured and unit"),
        ("network,measured,unit,us\nlenet5,3,us,3\n", "give heads measured and unit"),
        ("name,us\na,3\n", "one of the heads layer, network or plan"),
        ("network,us\nlenet5\n", "line 2: 1 cells under 2 heads"),
        *[
            (f"plan,{head},us\np.json,x,3\n", "a plan says all itself")
            for head in ("network", "pins", "engine", "objective")
        ],
        ("network,us\nlenet5,\n", "line 2, column us: a number is missing"),
        ("network,us\nlenet5,abc\n", "line 2, column us: 'abc' is not a number"),
        ("network,us\nlenet5,nan\n", "is not a number"),
        ("network,us\nlenet5,1e99\n", "no positive time"),
        ("network,us\nlenet5,-3\n", "no positive time"),
        ("network,us\nlenet5,0\n", "no positive time"),
        ("network,measured,unit\nlenet5,3,min\n", "line 2, column unit: 'min' is no unit: expected ps, ns"),
        ("network,measured,unit\nlenet5,101,%ocm\n", "above 100 per cent"),
        ("network,us\n,3\n", "line 2: one of layer, network or plan must say"),
        ("plan,network,us\np.json,lenet5,3\n", "a plan says all itself"),
        ("layer,us\nsize=4x4 channels=2,3\n", "line 2, column layer: filters is missing"),
        ("layer,us\nchannels=2 filters=2 size=4x4 kernal=3x3,3\n", "'kernal=3x3' is not NAME=SIZE"),
        ("layer,us\nchannels=2 filters=2 size=axb,3\n", "'size=axb' is no size such as 3x3"),
        ("layer,us\nchannels=2x2 filters=2 size=4x4,3\n", "'channels=2x2' is no size"),
        ("layer,us\nchannels=2 channels=2 filters=2 size=4x4,3\n", "channels stands twice"),
        ("layer,us\nchannels=2 filters=2 size=4x4 kernel=9x9,3\n", "cannot be"),
        ("layer,us\nchannels=2 filters=2 size=4x4 stride=0,3\n", "cannot be"),
        ("network,us\nlenet5,3\nlenet5,4\n", "line 3: row 'lenet5' stands in line 2 already"),
        ('network,us\n"lenet5,3\n', "line 2: not CSV"),
    ],
)
def test_bad_cells_are_one_clear_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        rows(tmp_path, text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean tso_table2"):
        load_measured("tso_table")
    with pytest.raises(InputError, match="no such file"):
        load_measured(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"network,us\n\xff\xfe,3\n")
    with pytest.raises(InputError, match="not UTF-8"):
        load_measured(tmp_path / "bytes.csv")


@given(st.text(alphabet='abenortwkusl,"=x\n;.#-+123 ', max_size=80))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_text(text)
    with contextlib.suppress(InputError):
        assert load_measured(path).rows


def test_layers_in_words() -> None:
    text = "channels=4 filters=8 size=10x12 kernel=3x2 stride=2x1 pad=1x0 dilation=2x3 groups=2 batch=3"
    layer = parse_layer(text, "here")
    assert (layer.b, layer.g, layer.n, layer.m, layer.h, layer.l) == (3, 2, 2, 4, 10, 12)
    # (10 + 2 - 5) // 2 + 1 = 4 rows, (12 - 4) // 1 + 1 = 9 columns
    assert (layer.r, layer.c, layer.kh, layer.kw, layer.stride_h, layer.stride_w) == (4, 9, 3, 2, 2, 1)
    assert (layer.dilation_h, layer.dilation_w, layer.pad_top, layer.pad_left) == (2, 3, 1, 0)
    assert parse_layer("channels=4 filters=8 size=5 stride=2", "here").c == 3


def test_a_profile_counts_microseconds() -> None:
    times = {"a": {"1": 2.0, "gpu": None}}
    assert Profile(times=times, unit="ms").rows(["a"], ["1", "2", "gpu"]) == ({"1": 2000.0, "gpu": None},)
    assert Profile(times=times, unit="ns").rows(["a"], ["1", "gpu"])[0]["1"] == 0.002
    with pytest.raises(InputError, match="task a: a time is above 1000 s"):
        Profile(times={"a": {"1": 1.1e9}}).rows(["a"], ["1"])


def test_bundled_rows_are_what_the_papers_print() -> None:
    assert set(list_measured()) == {"dma_table1", "tso_table2"}
    table2 = load_measured("tso_table2").rows
    assert len(table2) == 24
    assert {row.group for row in table2} == {"inception_v3", "lenet5", "resnet50"}
    from solver.uses.bench.tso import PUBLISHED

    for network, published in PUBLISHED.items():
        assert tuple(int(row.value) for row in table2 if row.network == network) == published
    assert [int(row.value) for row in load_measured("dma_table1").rows] == [88, 98, 98, 86, 85]
    assert all(row.occupancy for row in load_measured("dma_table1").rows)
