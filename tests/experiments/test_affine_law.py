"""Points with a unique solution without a penalty: the first-order method compared with an interior point."""

import numpy as np
import pytest

from experiments.theory import affine_law
from experiments.theory.affine_law import is_only_solution, nearest_of_trace_one
from experiments.theory.unique_solution import points_for_uniqueness, statistical_dimension


@pytest.mark.parametrize("law", affine_law.LAWS)
@pytest.mark.parametrize("d", [4, 7])
def test_both_sides_of_the_threshold_are_those_of_an_interior_point(law, d, monkeypatch):
    monkeypatch.setattr("experiments.theory.unique_solution.UNIQUE", 1e-9)  # it is small near there
    for replication in range(2):
        y, Z = affine_law.stream_of(law, d, replication)
        least = points_for_uniqueness(np.column_stack([y, Z]), 1)
        row = affine_law.measure(law, d, replication)
        assert (row["other"], row["only"]) == (least - 1, least)


def test_what_the_iterations_do_not_decide_stays_open(monkeypatch):
    monkeypatch.setattr("experiments.theory.affine_law.MOST", 1)
    y, Z = affine_law.stream_of("gaussian", 12, 0)
    n = int(statistical_dimension(12.0))
    assert is_only_solution(y[:n], Z[:n]) is None
    row = affine_law.measure("gaussian", 12, 0)
    assert row["only"] - row["other"] > 1


def test_the_nearest_matrix_of_trace_one_is_where_no_such_matrix_is_nearer():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 5))
    A = A + A.T
    nearest = nearest_of_trace_one(A)
    assert np.trace(nearest) == pytest.approx(1.0)
    assert np.linalg.eigvalsh(nearest)[0] > -1e-12
    for _ in range(50):
        B = rng.standard_normal((5, 5))
        other = B @ B.T / np.trace(B @ B.T)
        assert np.sum((A - nearest) * (other - nearest)) <= 1e-9
