"""One name for the penalty: lam and ridge on every face, their roots a and c as before."""

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.problem.penalty import Penalty

X = dc.datasets.make_planted(20, 4, noise=0.3, rng=0).X
BY_ROOTS = dc.Penalty(a=0.5, c=0.2)
WEIGHTS = {"lam": 0.2**2, "ridge": 0.5**2}


@pytest.mark.parametrize("shape", [(), (4,)])
def test_a_weight_is_the_square_of_its_root(shape):
    lam, ridge = np.full(shape, 0.04), np.full(shape, 0.25)
    penalty = Penalty(lam=lam, ridge=ridge)
    for mine, roots in zip(penalty.weights(4), BY_ROOTS.weights(4), strict=True):
        np.testing.assert_allclose(mine, roots)
    np.testing.assert_allclose(Penalty(a=penalty.a, c=penalty.c).lam, lam)
    assert repr(Penalty(lam=0.01)) == "Penalty(lam=0.01, ridge=0.0)"
    assert Penalty.l1(0.01, 0.5) == Penalty(a=0.5, lam=0.01)


def test_a_weight_keeps_the_number_that_was_given_and_cannot_be_changed():
    lam = np.array([0.01, 0.1])
    penalty = Penalty(lam=lam)
    lam[0] = 7.0
    assert penalty.lam[0] == 0.01
    with pytest.raises(ValueError, match="read-only"):
        penalty.c[0] = 1.0


@pytest.mark.parametrize("weights", [{"a": 1.0, "ridge": 1.0}, {"c": 0.1, "lam": 0.1}])
def test_a_weight_and_its_root_are_not_given_together(weights):
    with pytest.raises(dc.ParameterError, match="not both"):
        Penalty(**weights)


@pytest.mark.parametrize("name", ["lam", "ridge"])
@pytest.mark.parametrize("bad", [-1.0, np.nan, "0.1", [[1.0]]])
def test_a_bad_weight_is_named(name, bad):
    with pytest.raises(dc.ParameterError, match=name):
        Penalty(**{name: bad})


@pytest.mark.parametrize("solver", [dc.low_rank, dc.fista])
def test_solvers_take_the_weights_themselves(solver):
    mine, other = solver(X, lam=0.04, ridge=0.25), solver(X, penalty=BY_ROOTS)
    assert mine.value == pytest.approx(other.value, abs=1e-9)


@pytest.mark.parametrize("builder", [dc.v_space, dc.lifted])
def test_builders_take_the_weights_themselves(builder):
    mine, other = dc.solve(builder(X, **WEIGHTS)), dc.solve(builder(X, penalty=BY_ROOTS))
    assert mine.value == pytest.approx(other.value, abs=1e-7)


def test_certificates_comparisons_and_paths_take_them_too():
    result = dc.low_rank(X, **WEIGHTS)
    assert dc.certify_v(X, result, **WEIGHTS) == dc.certify_v(X, result, penalty=Penalty(**WEIGHTS))
    labels = dc.rounding.kmeans_centered(result.F)
    assert dc.certify_labels(X, labels, result, **WEIGHTS).gap >= 0.0
    label_space = dc.solve(dc.penalized_nu(X, ridge=0.25))
    bracket, other = dc.certify_y(X, label_space.F, ridge=0.25), dc.low_rank(X, ridge=0.25)
    assert max(bracket.lower, other.lower) <= min(bracket.upper, other.upper)
    table = dc.compare(X, methods=["low_rank"], **WEIGHTS)
    assert table.rows[0]["value"] == pytest.approx(result.value, abs=1e-4)
    path = dc.paths.lambda_path(X, [0.04], ridge=0.25)
    assert path.value[0] == pytest.approx(result.value, abs=1e-4)


def test_a_penalty_and_weights_are_not_given_together():
    with pytest.raises(dc.ParameterError, match="not both"):
        dc.low_rank(X, penalty=BY_ROOTS, lam=0.1)


def test_the_estimators_take_either():
    labels = [
        dc.DiffracClustering(**weights).fit(X).result_.value
        for weights in ({"lam": 0.04, "ridge": 0.25}, {"a": 0.5, "c": 0.2}, {"a": 0.5, "lam": 0.04})
    ]
    assert np.ptp(labels) < 1e-4
    assert dc.DiffracClustering(ridge=0.0).fit(X).upper_bound_ < dc.DiffracClustering().fit(X).upper_bound_
