"""Operands of element-wise layers that are broadcast: how shapes become b, g, r, c, and what a layer says of them."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from instances.frozen import digest
from instances.network.operators import element_wise
from instances.network.workload import Layer


def eltwise(*broadcast: str, b: int = 1, g: int = 2, r: int = 3, c: int = 4, inputs: int = 2) -> Layer:
    return Layer(
        name="mix", kind="eltwise", b=b, g=g, m=1, n=1, r=r, c=c, h=r, l=c, inputs=inputs, weights="none",
        broadcast=broadcast,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shapes", "sizes", "lacks"),
    [
        # a feature map and its gate; rows by columns; a mask; a batch; a single number of data
        ([(1, 8, 7, 7), (1, 8, 1, 1)], (1, 8, 7, 7), ("", "rc")),
        ([(1, 16, 32, 1), (1, 16, 1, 32)], (1, 16, 32, 32), ("c", "r")),
        ([(1, 4, 9, 9), (1, 1, 9, 9)], (1, 4, 9, 9), ("", "g")),
        ([(1, 4, 9, 9), (9, 9)], (1, 4, 9, 9), ("", "g")),
        ([(5, 4, 1, 1), (1, 4, 6, 6)], (5, 4, 6, 6), ("rc", "b")),
        ([(2, 3, 4, 5), (1,)], (2, 3, 4, 5), ("", "bgrc")),
        # tokens and features: the mean of a token, a factor of a feature, a row of positions for a batch
        ([(1, 10, 64), (1, 10, 1)], (1, 64, 10, 1), ("", "g")),
        ([(1, 10, 64), (64,)], (1, 64, 10, 1), ("", "r")),
        ([(4, 10, 64), (4, 10, 64)], (1, 64, 40, 1), ("", "")),
        ([(4, 10, 64), (1, 10, 64)], (4, 64, 10, 1), ("", "b")),
        ([(10, 1), (64,)], (1, 64, 10, 1), ("g", "r")),
        # anchor grids of a detector: anchors, cells, coordinates
        ([(1, 3, 20, 20, 2), (1, 1, 20, 20, 2)], (3, 2, 400, 1), ("", "b")),
        ([(1, 3, 20, 20, 2), (1, 3, 1, 1, 2), (2,)], (3, 2, 400, 1), ("", "r", "br")),
        ([(2, 3, 4, 5, 6), (2, 1, 4, 1, 1)], (2, 30, 3, 4), ("", "gr")),
        ([(2, 3, 4, 5, 1), (2, 1, 4, 1, 1)], (2, 5, 3, 4), ("", "gr")),
        ([(5,), (1,)], (1, 5, 1, 1), ("", "g")),
        ([(1, 6, 1, 7, 1, 2, 3), (7, 1, 1, 3)], (6, 3, 7, 2), ("", "bc")),
    ],
)
def test_shapes_become_dimensions(
    shapes: list[tuple[int, ...]], sizes: tuple[int, ...], lacks: tuple[str, ...]
) -> None:
    assert element_wise(shapes) == (sizes, lacks)
    # what every operand has along the dimensions is all of its elements
    for shape, missing in zip(shapes, lacks, strict=True):
        assert np.prod([n for d, n in zip("bgrc", sizes, strict=True) if d not in missing]) == np.prod(shape)


def test_more_than_four_groups_of_axes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"broadcast along 5 groups of axes, a layer has four"):
        element_wise([(2, 3, 4, 5, 6), (2, 1, 4, 1, 6)])


def test_elements_of_inputs() -> None:
    layer = eltwise("", "rc", "g", "bgrc", b=5, inputs=4)
    assert [layer.input_elements(k) for k in range(4)] == [5 * 2 * 3 * 4, 5 * 2, 5 * 3 * 4, 1]


def test_layers_without_broadcast_are_stored_as_before() -> None:
    assert "broadcast" not in eltwise().model_dump()
    assert Layer.model_validate(eltwise("", "rc").model_dump()) == eltwise("", "rc")
    assert digest(eltwise().model_dump()) != digest(eltwise("", "rc").model_dump())


@pytest.mark.parametrize(
    ("broadcast", "said"),
    [
        (("", "x"), "expected the letters of bgrc"),
        (("", "cr"), "in this order"),
        (("", "rr"), "expected the letters of bgrc"),
        (("rc",), "must say something of each of 2 inputs"),
        (("", ""), "leave it out"),
        (("", "b"), "dimension b of the result is 1"),
        (("gr", "rc"), "no input has dimension r, which is 3"),
    ],
)
def test_wrong_ones_are_refused(broadcast: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        eltwise(*broadcast)


def test_only_element_wise_layers_have_them() -> None:
    with pytest.raises(ValidationError, match="only inputs of an eltwise layer are, not of a pool"):
        Layer(name="p", kind="pool", g=2, m=1, n=1, r=3, c=4, h=3, l=4, weights="none", broadcast=("r",))
    with pytest.raises(ValidationError, match="strides and kernel of 1"):
        Layer(
            name="p", kind="eltwise", g=2, m=1, n=1, r=3, c=4, h=6, l=4, stride_h=2, weights="none", inputs=2,
            broadcast=("", "g"),
        )  # fmt: skip


def test_resident_rows_of_an_input_of_one_row() -> None:
    given = eltwise("", "rc").model_dump()
    assert Layer.model_validate({**given, "resident_in": (2, 1)}).residents == (2, 1)
    with pytest.raises(ValidationError, match="inputs have 3 and 1 rows, the result 3"):
        Layer.model_validate({**given, "resident_in": (2, 2)})
