"""Parts of the working-set certificate: error bound of S, entering coordinates, initial working set."""

from fractions import Fraction

import numpy as np
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import Remainder
from diffrac_cvx.certificates.working_set import check_kkt

NONE, NO_C = np.zeros(0, dtype=np.intp), np.zeros((0, 0))


def two_columns_that_agree_where_weights_are_large(groups=None, lam=0.2):
    """A problem without a core, and weights u: u - t is 1/2 where two columns agree, -1/2 where they differ, at t = 1.

    So G is 1/2 between them and 0 on its diagonal.
    """
    rng, n = np.random.default_rng(0), 64
    X = rng.standard_normal((n, 6))
    X -= X.mean(axis=0)
    above = np.arange(n) % 4 < 2
    X[:, 4] = np.where(np.arange(n) % 2, 1.0, -1.0)
    X[:, 5] = np.where(above, X[:, 4], -X[:, 4])
    problem = direction_problem(X, 1.0, dc.Penalty(lam=lam, groups=groups))
    return block_problem(problem, NONE), np.where(above, 1.5, 0.5)


@pytest.mark.parametrize(("lam", "slack"), [(0.2, 0.0), (0.4, 0.2), (0.2, 0.5)])
@pytest.mark.parametrize("groups", [None, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 4], [0, 0, 1, 1, 2, 3]])
def test_a_kkt_check_proves_its_bound_where_s_with_the_multiplier_nearest_to_it_is_positive_beyond_its_slack(
    monkeypatch, groups, slack, lam
):
    diagonal, refused = Remainder.diagonal.func, 0
    # On the diagonal: of components, it is the sum of their coordinates'.
    monkeypatch.setattr(Remainder, "diagonal", property(lambda self: diagonal(self) - slack))
    core, u = two_columns_that_agree_where_weights_are_large(groups, lam)
    problem = core.problem
    for t in np.linspace(0.5, 3.0, 60):
        look = check_kkt(core, u, NO_C, t)
        G = problem.X.weighted_gram(u) - t * (problem.A + np.diag(problem.c**2))
        S = t * problem.pair_penalty.project_safe(G / t) - G
        assert look.lower is not None or np.linalg.eigvalsh(S)[0] <= slack  # another multiplier may prove more
        refused += look.lower is None
        assert look.lower is None or Fraction(look.lower) <= 1 - Fraction(t) * Fraction(float(np.mean(1.0 / u)))
    assert 0 < refused < 60


def test_the_coordinates_that_are_named_are_those_of_the_pair_that_makes_s_negative():
    core, u = two_columns_that_agree_where_weights_are_large()
    assert check_kkt(core, u, NO_C, 1.9).lower is not None
    look = check_kkt(core, u, NO_C, 1.0)
    assert look.lower is None
    assert set(look.violated) == {4, 5}
