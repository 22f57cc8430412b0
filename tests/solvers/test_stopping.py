"""Common driver of the fast solvers, and a custom solver written with the public names of `solvers`."""

import numpy as np
import pytest
from instances import assert_overlap, normal

import diffrac_cvx as dc
from diffrac_cvx.solvers import DualPoint, Iterate, Stopping, solve_by_iterates

L1 = dc.Penalty(c=0.2)


def fixed_point(X, nu=1.0, **options):
    """U <- mean_i z_i (z_i'U) / ||z_i'U|| on whitened data: at a fixed point A V = M(u) V."""

    def iterates(problem, start):
        U = np.eye(problem.X.shape[1]) if start.U is None else start.U
        for done in range(1, 10_000):
            scores = problem.X.array() @ U
            U = problem.X.array().T @ (scores / np.linalg.norm(scores, axis=1, keepdims=True)) / len(scores)
            yield Iterate(U, done)

    start = options.pop("start", None)
    stopping = Stopping(**{"tol": 1e-5, "max_iter": 5000} | options)
    return solve_by_iterates(X, nu, dc.Penalty(), iterates, stopping, "fixed_point", start=start)


@pytest.mark.parametrize("nu", [0.0, 0.4, 1.0])
def test_a_solver_of_ones_own_finds_the_optimum_and_has_the_limits_and_the_warm_start(nu):
    ours, theirs = fixed_point(normal(30), nu), dc.low_rank(normal(30), nu)
    assert ours.solver == "fixed_point"
    assert ours.gap <= 1e-5
    assert_overlap(ours, theirs)
    assert fixed_point(normal(30), nu, start=ours).n_iter == 0
    if nu > 0.0:
        assert fixed_point(normal(30), nu, max_iter=1, tol=1e-9).status is dc.Status.MAX_ITER
        assert fixed_point(normal(30), nu, callback=lambda progress: True).status is dc.Status.STOPPED


def test_a_bad_dual_gives_a_wide_bracket_and_never_a_wrong_one():
    X, optimum = normal(30), dc.low_rank(normal(30), 1.0, L1)

    def iterates(problem, start):
        yield Iterate(np.eye(4), 1, DualPoint(u=np.full(30, 7.0), C=np.full((4, 4), 100.0)))

    found = solve_by_iterates(X, 1.0, L1, iterates, Stopping(1e-9, 10), "one point")
    assert found.status is dc.Status.STALLED
    assert_overlap(found, optimum)
