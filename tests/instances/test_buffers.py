"""Files of buffers: what is read, what is refused in one line, what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from instances.errors import InputError
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


def test_what_two_take_together() -> None:
    one = Buffer(name="a", lower=0, upper=4, size=8, gaps=(Gap(lower=2, upper=4, window=(4, 8)),))
    assert together(one, Buffer(name="b", lower=1, upper=3, size=2)) == [(0, 8, 0, 2), (4, 8, 0, 2)]
    assert together(one, Buffer(name="c", lower=4, upper=5, size=2)) == []


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
    path.write_text(path.read_text().replace("buffers/1", "buffers/2"))
    with pytest.raises(InputError, match="field format is 'certile-buffers/2', this version reads 'certile-buffers/1'"):
        load_buffers(path)
