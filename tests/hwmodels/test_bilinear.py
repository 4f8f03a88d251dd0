"""Bilinear tables: collecting terms, restricting, exact values, and the limits of integer arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.nest.price.bilinear import Bilinear, Ints
from instances.errors import InputError


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


#: f(s, q) = [1 2 3] x [10 20] + [1 0 1] x [0 5]
TABLE = Bilinear(np.array([[1, 2, 3], [1, 0, 1]]), np.array([[10, 20], [0, 5]]))


def test_values_by_hand() -> None:
    # f(0, 0) = 1*10 + 1*0, f(0, 1) = 1*20 + 1*5, f(1, 1) = 2*20 + 0*5, f(2, 1) = 3*20 + 1*5
    assert TABLE.matrix().tolist() == [[10, 25], [20, 40], [30, 65]]
    assert [TABLE.at(0, 0), TABLE.at(0, 1), TABLE.at(1, 1), TABLE.at(2, 1)] == [10, 25, 40, 65]
    assert TABLE.shape == (3, 2)


def test_ceiling_bounds_every_value_row_by_row() -> None:
    # 3*20 + 1*5; here it is reached, in general the largest factors need not meet
    assert TABLE.ceiling() == 65
    assert Bilinear(np.array([[1, 0], [0, 1]]), np.array([[1], [1]])).ceiling() == 2
    assert Bilinear.of([], (3, 2)).ceiling() == 0


def test_no_terms_are_the_zero_function() -> None:
    nothing = Bilinear.of([], (3, 2))
    assert nothing.shape == (3, 2)
    assert nothing.matrix().tolist() == [[0, 0]] * 3
    assert nothing.at(2, 1) == 0
    assert nothing.terms == []


def test_terms_that_share_a_factor_are_added() -> None:
    a, b, c = ints(1, 2), ints(3, 4), ints(5, 6)
    # same channel factor: (a + b) x c; same spatial factor: a x (b + c); a zero factor vanishes
    assert [t.tolist() for t in Bilinear.of([(a, c), (b, c)], (2, 2)).terms[0]] == [[4, 6], [5, 6]]
    assert [t.tolist() for t in Bilinear.of([(a, b), (a, c)], (2, 2)).terms[0]] == [[1, 2], [8, 10]]
    assert Bilinear.of([(a, b * 0)], (2, 2)).terms == []


def test_scaling_by_zero_leaves_no_terms() -> None:
    assert TABLE.times(0) == []
    assert Bilinear.of(TABLE.times(3), TABLE.shape).at(2, 1) == 3 * 65


def test_take_keeps_the_chosen_rows_and_columns() -> None:
    assert TABLE.take(s=ints(2, 0)).matrix().tolist() == [[30, 65], [10, 25]]
    assert TABLE.take(q=ints(1)).matrix().tolist() == [[25], [40], [65]]
    assert TABLE.take().matrix().tolist() == TABLE.matrix().tolist()
    assert TABLE.take(s=ints()).ceiling() == 0


@pytest.mark.parametrize(("a", "kind"), [(2**26, np.float64), (2**27, np.int64)])
def test_matrix_is_exact_on_both_sides_of_float64(a: int, kind: type) -> None:
    # (2**26 + 1) * (2**26 - 1) = 2**52 - 1 is exact in float64; (2**27 + 1) * (2**27 - 1) = 2**54 - 1 is not
    table = Bilinear(np.array([[a + 1]]), np.array([[a - 1]]))
    matrix = table.matrix()
    assert matrix.dtype == kind
    assert int(matrix[0, 0]) == a * a - 1 == table.at(0, 0)


def test_values_beyond_the_integer_limit_are_refused_but_known_exactly() -> None:
    table = Bilinear(np.array([[2**31, 1]]), np.array([[2**31, 1]]))
    assert table.at(0, 0) == table.ceiling() == 2**62
    with pytest.raises(InputError, match=r"2\*\*62: choose a larger tick_ps"):
        table.matrix()
    assert table.take(s=ints(1)).matrix().tolist() == [[2**31, 1]]


@given(
    st.lists(
        st.tuples(st.tuples(*[st.integers(0, 3)] * 3), st.tuples(*[st.integers(0, 3)] * 2)),
        max_size=6,
    )
)
def test_collecting_never_changes_the_function(rows: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
    table = Bilinear.of([(ints(*a), ints(*b)) for a, b in rows], (3, 2))
    plain = [[sum(a[s] * b[q] for a, b in rows) for q in range(2)] for s in range(3)]
    assert table.matrix().tolist() == plain
    assert len(table.a) <= len(rows)
    assert all(a.any() and b.any() for a, b in table.terms)
