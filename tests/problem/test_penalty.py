"""Penalty: value, weights as arrays, multiples, invalid arguments, and the same parameter names in every interface.

Everywhere lam and ridge are the weights themselves, and a and c their roots.
"""

import numpy as np
import pytest
from instances import planted
from oracles import gamma

import diffrac_cvx as dc
from diffrac_cvx.problem.penalties.group import GroupNorms
from diffrac_cvx.problem.penalty import Penalty, weights_of

A, C = np.array([0.0, 0.3, 2.0]), np.array([0.5, 0.0, 0.1])
V = np.cov(np.random.default_rng(4).standard_normal((3, 9)))


@pytest.mark.parametrize("lam", [0.0, 0.04])
def test_the_lambda_of_the_papers_experiments_multiplies_the_squared_l1_norm(lam):
    assert gamma(V, *Penalty.l1(lam, a=A).weights(3)) == pytest.approx(lam * np.abs(V).sum() + A**2 @ np.diag(V))


@pytest.mark.parametrize(("name", "root"), [("c", "c"), ("a", "a"), ("lam", "c"), ("ridge", "a")])
def test_weights_are_copied_and_cannot_be_written(name, root):
    given = C.copy()
    penalty = Penalty(**{name: given})
    given[:] = 7.0
    np.testing.assert_array_equal(getattr(penalty, name), C)
    with pytest.raises(ValueError, match="read-only"):
        getattr(penalty, root)[0] = 1.0


# Names


X = planted(20, 4)
BY_ROOTS = dc.Penalty(a=0.5, c=0.2)
WEIGHTS = {"lam": 0.2**2, "ridge": 0.5**2}


@pytest.mark.parametrize("shape", [(), (4,)])
def test_a_weight_is_the_square_of_its_root(shape):
    lam, ridge = np.full(shape, 0.04), np.full(shape, 0.25)
    penalty = Penalty(lam=lam, ridge=ridge)
    np.testing.assert_allclose(penalty.weights(4), BY_ROOTS.weights(4))
    np.testing.assert_allclose(Penalty(a=penalty.a, c=penalty.c).lam, lam)
    assert repr(Penalty(lam=0.01)) == "Penalty(lam=0.01, ridge=0.0)"
    assert Penalty.l1(0.01, 0.5) == Penalty(a=0.5, lam=0.01)


SOLVERS = {"low_rank": dc.low_rank, "fista": dc.fista}
SOLVERS |= {build.__name__: lambda X, build=build, **of: dc.solve(build(X, **of)) for build in (dc.v_space, dc.lifted)}


@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_solvers_and_builders_take_the_weights_themselves(solve):
    assert solve(X, **WEIGHTS).value == pytest.approx(solve(X, penalty=BY_ROOTS).value, abs=1e-7)


def test_equal_groups_are_one_key_and_say_how_many_there_are():
    one, other = (dc.Penalty(lam=0.1, groups=groups).groups for groups in ([0, 0, 1], ["a", "a", "b"]))
    assert len({one, dc.Penalty(lam=0.2, groups=[5, 5, 6]).groups, other}) == 3
    assert one == dc.Penalty(lam=0.3, groups=[0, 0, 1]).groups
    assert repr(one) == "<2 groups of 3 columns>"


@pytest.mark.parametrize(("most", "columns"), [(1, [1, 3]), (2, [1, 3]), (3, [1, 3, 0]), (4, [1, 3, 0]), (6, range(6))])
def test_the_first_columns_are_whole_groups_that_fit_and_one_at_least(most, columns):
    found = GroupNorms(np.ones(6), np.array([1, 0, 2, 0, 2, 2])).first_groups(np.array([3, 0, 1, 5]), most)
    assert sorted(found) == sorted(columns)


@pytest.mark.parametrize(
    "penalty",
    [
        Penalty(ridge=1.0, groups=["a", "a", "b"]),
        Penalty(lam=0.1, groups=["a", "b", "c"]),
        Penalty(lam=[0.1, 0.2, 0.3], ridge=1.0, groups=[[0], [1], [2]]),
    ],
)
def test_groups_without_a_weight_and_groups_of_one_are_those_of_the_penalty_without_groups(penalty):
    weights = weights_of(penalty, 3)
    assert weights.splits_into_blocks
    np.testing.assert_array_equal(weights.a, np.full(3, penalty.a))
    np.testing.assert_array_equal(weights.c, np.full(3, penalty.c))
