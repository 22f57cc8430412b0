import numpy as np
import pytest

from diffrac_cvx.baselines import alternating_optimisation, alternating_runs
from diffrac_cvx.datasets import make_planted
from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError
from diffrac_cvx.metrics import clustering_error, squared_correlation
from diffrac_cvx.rounding import refine


def test_alternation_finds_a_planted_clustering_among_few_dimensions():
    X, y, _ = make_planted(300, 3, sparsity=3, imbalance=0.1)
    assert clustering_error(y, alternating_optimisation(X, rng=0)) == 0.0


def test_the_labels_returned_are_those_of_the_best_run():
    X = np.random.default_rng(0).standard_normal((40, 5))
    best = alternating_optimisation(X, restarts=6, rng=1)
    runs = [squared_correlation(X, y) for y in alternating_runs(X, restarts=6, rng=1)]
    assert squared_correlation(X, best) == max(runs) > min(runs)


def test_every_run_ends_at_a_fixed_point():
    X = np.random.default_rng(1).standard_normal((40, 5))
    for y in alternating_runs(X, rng=0):
        np.testing.assert_array_equal(refine(X, y), y)


def test_the_first_point_is_labelled_plus_one():
    X = np.random.default_rng(2).standard_normal((20, 5))
    assert all(y[0] == 1.0 for y in alternating_runs(X, rng=0))


def test_runs_depend_on_the_generator_alone():
    X = np.random.default_rng(3).standard_normal((40, 5))
    seeded = alternating_runs(X, rng=7)
    np.testing.assert_array_equal(seeded, alternating_runs(X, rng=np.random.default_rng(7)))
    assert np.any(np.array(seeded) != alternating_runs(X, rng=8))


def test_an_affine_change_of_the_data_changes_nothing():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 3))
    moved = X @ rng.standard_normal((3, 3)) + rng.standard_normal(3)
    np.testing.assert_array_equal(alternating_runs(moved, rng=0), alternating_runs(X, rng=0))


def test_integers_and_floats_give_the_same_labels_and_stay_as_they_are():
    X = np.random.default_rng(5).integers(-9, 9, (40, 3))
    X.setflags(write=False)
    np.testing.assert_array_equal(alternating_optimisation(X, rng=0), alternating_optimisation(X * 1.0, rng=0))


def test_constant_data_give_labels_and_a_warning():
    with pytest.warns(DegenerateDataWarning):
        y = alternating_optimisation(np.ones((6, 2)), rng=0)
    assert set(y) <= {-1.0, 1.0}


@pytest.mark.parametrize(
    ("change", "named"),
    [({"restarts": 0}, "restarts"), ({"max_iter": 0}, "max_iter"), ({"rng": None}, "rng"), ({"rng": 0.5}, "rng")],
)
def test_a_bad_parameter_is_refused(change, named):
    with pytest.raises(ParameterError, match=named):
        alternating_optimisation(np.eye(3), **{"rng": 0, **change})


@pytest.mark.parametrize("X", [np.ones(3), [[1.0, np.nan], [0.0, 1.0]], np.ones((1, 2))])
def test_bad_data_are_refused(X):
    with pytest.raises(DataError, match="X"):
        alternating_optimisation(X, rng=0)
