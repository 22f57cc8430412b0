"""Parts of the certificates, each against its dense formula."""

from dataclasses import replace

import numpy as np
import pytest
from posed import direction_problem, linked_points

import diffrac_cvx as dc
from diffrac_cvx.certificates import label_space, screening
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import eliminate
from diffrac_cvx.certificates.screening import gap_safe_weights, screen_components, screen_groups
from diffrac_cvx.points import floating_point
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.floating_point import WhiteningErrorBounds, sum_error
from diffrac_cvx.problem.result import Bracket


def problem_of(n, d, nu, penalty, seed=0):
    return direction_problem(as_data(np.random.default_rng(seed).standard_normal((n, d))), nu, penalty)


# I + C is positive definite, nearly singular, or indefinite


# Components


def test_the_gap_bounds_the_distance_of_the_weights_row_by_row():
    """gap >= mean (r - r*)^2 / r*: the least r* of a row that this leaves is in w = gap / (r^2 r*)."""
    q, gap = np.array([1.0, 0.25, 4.0]), 0.01
    r, least = np.sqrt(q), gap / (gap_safe_weights(q, gap)[1] * q)
    assert np.all(least < r)
    np.testing.assert_allclose((r - least) ** 2 / least / 3, gap, rtol=1e-9)
    np.testing.assert_array_equal(gap_safe_weights(q, -1.0)[1], gap_safe_weights(q, 0.0)[1])
    assert np.all(gap_safe_weights(q, 0.0)[1] > 0.0)


@pytest.mark.parametrize("nu", [1.0, 0.5])
def test_a_pair_that_rounding_keeps_inside_its_box_is_not_proved_to_be_apart(nu, monkeypatch):
    """The box ends where rounding may have moved the sum to."""
    problem, q = problem_of(50, 2, nu, dc.Penalty(c=0.3), 5), np.full(50, 0.4)
    monkeypatch.setattr(screening, "gap_safe_weights", lambda q, gap: (1.0 / np.sqrt(q), 0.0 * q))  # no gap
    G = problem.X.weighted_gram(1.0 / np.sqrt(q)) - problem.A
    if nu < 1.0:
        G = G - np.outer(G[:, 2], G[:, 2]) / G[2, 2]
    ratio, found = 1.0 - np.logspace(-17, -6, 60), []
    for size in np.sqrt(np.abs(G[0, 1]) / ratio / (problem.c[0] * problem.c[1])):  # of the box, so that it is the share
        c = problem.c * np.append([size, size], np.ones(len(problem.c) - 2))
        wider = replace(problem, pair_penalty=problem.pair_penalty.with_weights(c))
        labels = screen_components(wider, q, 0.0)
        found.append(labels[0] == labels[1])
    assert np.all(np.asarray(found)[ratio >= 1.0 - 1e-15])
    assert 5 < np.sum(found) < 40


def test_groups_are_not_apart_whose_blocks_may_be_off_as_far_as_their_bound(monkeypatch):
    """Blocks of two by two of no size: entries that are off by a share of c_j c_k in all have twice that as their norm.

    In a coarse unit the sums of the norms are rounded by as many terms as there are coordinates.
    """
    problem = problem_of(50, 60, 1.0, dc.Penalty(lam=0.3, groups=np.repeat(np.arange(30), 2)))
    at = eliminate(block_problem(problem), np.ones(50), 1.0)
    at = replace(at, F=0.0 * at.F)
    at.__dict__["gram_weights"] = np.zeros(50)
    monkeypatch.setattr(floating_point, "UNIT_ROUNDOFF", 2.0**-30)

    def apart(off, box=0.0):
        found = replace(at, F=np.full((1, 60), box**0.5) * at.problem.c)
        labels = screen_groups(found, problem.pair_penalty, lambda *_: np.full((60, 60), off))
        return len(np.unique(labels)) > 1

    for fraction in (0.3, 0.49):
        assert apart(fraction)
        assert apart(0.0, fraction)
        assert apart(fraction / 2, fraction / 2)
    for fraction in (0.51, 0.7):
        assert not apart(fraction)
        assert not apart(0.0, fraction)
        assert not apart(fraction / 2, fraction / 2)
    assert not apart(0.5 * (1.0 - sum_error(60)))
    assert apart(0.5 * (1.0 - sum_error(150)))
    assert not apart(np.nan)


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1, 2, 3]])
def test_nothing_is_apart_where_constraints_signs_without_a_weight_or_too_wide_a_gap_leave_it_unknown(groups):
    X, q = 0.1 * as_data(np.random.default_rng(3).standard_normal((60, 6))), np.full(60, 0.5)
    plain, offset = (direction_problem(X, nu, dc.Penalty(lam=0.5, ridge=1.0, groups=groups)) for nu in (1.0, 0.5))
    free = screen_components(plain, q, 1e-9)
    assert free.max() == screen_components(offset, q, 1e-9).max() > 0
    assert not screen_components(offset, q, 10.0).any()
    linked = direction_problem(
        linked_points(X, dc.Constraints(cannot_link=[(0, 1)])), 1.0, dc.Penalty(lam=0.5, ridge=1.0, groups=groups)
    )
    assert not screen_components(linked, q[1:], 1e-9).any()
    lam = np.where(np.arange(6) == 5, 0.0, 0.5)
    for known, together in (([0, 1], False), ([0, 5], True)):
        signed = direction_problem(X, 1.0, dc.Penalty(lam=lam, ridge=1.0, nonnegative=known))
        assert (screen_components(signed, q, 1e-9).max() == 0) == together


# The space of labels


def test_where_whitening_is_not_accurate_at_all_the_bracket_is_wide_and_not_wrong(noisy, monkeypatch):
    Y = np.ones((12, 1))
    assert dc.certify_y(noisy, Y).upper < 2.0
    for error in (0.6, 1.0, 1.5, np.inf, np.nan):
        monkeypatch.setattr(
            label_space, "whitening_error_bounds", lambda *of, error=error: WhiteningErrorBounds(0.0, error)
        )
        assert label_space.projection_of(array_points(noisy)).error == np.inf
        assert dc.certify_y(noisy, Y) == Bracket(0.0, 1.0)
