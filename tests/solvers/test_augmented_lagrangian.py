import numpy as np
import pytest
from instances import normal
from posed import direction_problem

from diffrac_cvx.certificates.direction_bounds import certify
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Status
from diffrac_cvx.solvers import Iterate, low_rank
from diffrac_cvx.solvers.factored import augmented_lagrangian
from diffrac_cvx.solvers.factored.augmented_lagrangian import Lagrangian


def iterates_of(problem, max_iter, start=None):
    """Yield the iterates of V as one block, without the pauses between them."""
    points = augmented_lagrangian.one_block_iterates(problem, max_iter, start)
    return (point for point in points if isinstance(point, Iterate))


@pytest.mark.parametrize("penalty", [Penalty(), Penalty(c=0.2)], ids=["none", "l1"])
def test_a_rank_that_is_too_small_grows_until_the_gap_is_closed(penalty):
    """The optimum has rank 3; from rank one, eigenvectors of the certificate must supply the other directions."""
    problem = direction_problem(as_data(normal()), 1.0, penalty)
    start = normal(4, 1, seed=3)
    points = list(iterates_of(problem, 3000, start))
    ranks = [point.U.shape[1] for point in points]
    assert ranks[0] == 1
    assert max(ranks) > 2
    gaps = [point.point.value - certify(problem, point.point, point.dual).lower for point in points]
    assert min(gaps) < 1e-5


def correlated(n, d, rho, seed=1):
    """Columns with correlation rho between neighbours, and clusters along a dense direction."""
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((2, n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + (1 - rho**2) ** 0.5 * noise[:, j]
    return X + np.outer(np.sign(rng.standard_normal(n)), rng.standard_normal(d)) / d**0.5


@pytest.mark.parametrize(
    ("n", "d", "rho", "nu", "lam", "limit"),
    [
        (400, 40, 0.0, 1.0, 0.001, 120),
        (150, 50, 0.9, 1.0, 0.1, 400),
        (47, 50, 0.5, 1.0, 0.005, 900),
        (90, 40, 0.5, 0.5, 0.02, 1000),
        (2000, 30, 0.5, 1.0, 0.0, 60),
        (500, 40, 0.5, 0.5, 0.0, 300),
    ],
)
def test_the_gap_closes_in_few_function_values(n, d, rho, nu, lam, limit, monkeypatch):
    """Without the metric, the persistent memory and the refined bounds it took 3 to 20 times as many steps."""
    problem = direction_problem(as_data(correlated(n, d, rho)), nu, Penalty.l1(lam))
    values, lower, upper, evaluate = [], 0.0, 1.0, Lagrangian.point
    monkeypatch.setattr(Lagrangian, "point", lambda *given: values.append(1) or evaluate(*given))
    for iterate in iterates_of(problem, 5000):
        bound = iterate.bound or certify(problem, iterate.point, iterate.dual)
        lower, upper = max(lower, bound.lower), min(upper, iterate.point.value)
        if upper - lower <= 1e-5:
            break
    assert len(values) <= limit
    assert upper - lower <= 1e-5


# Data of unequal size


@pytest.mark.parametrize(("n", "d", "rows"), [(12, 5, 1), (60, 20, 3), (40, 6, 2)])
def test_outlying_rows_do_not_keep_the_gap_open_and_the_end_is_where_the_bracket_no_longer_narrows(n, d, rows):
    """Without preconditioning, the gap stayed above 0.3."""
    X = normal(n, d)
    X[:rows] *= 1e6
    assert low_rank(X, penalty=Penalty.l1(0.01), tol=1e-5, max_iter=3000).status is Status.OPTIMAL
    if n == 12:
        end = low_rank(X, penalty=Penalty.l1(0.01), tol=1e-13, max_iter=10**6, time_limit=300.0)
        assert end.status is Status.STALLED
        assert end.gap < 1e-5
