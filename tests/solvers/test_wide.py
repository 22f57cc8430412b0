"""Certified bounds for tables with more columns than rows, solved on working sets, for all features.

The reference implementations follow (15) and its dual, in NumPy, in fractions and with CVXPY.  Any V gives a value that
no lower bound may exceed, however inaccurate the solver.
"""

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates import direction_bounds
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import eliminate
from diffrac_cvx.certificates.working_set import best_dual, check_kkt, off_diagonal_multipliers
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.problem.penalties.lassos import lasso_residuals
from diffrac_cvx.solvers import race
from diffrac_cvx.solvers.factored import solver, working_set

pytestmark = [
    pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning"),
]


def few_or_all(few, many):
    """Run a test on a few seeds, and on many if slow tests are selected."""
    return pytest.mark.parametrize(
        "seeds", [range(few), pytest.param(range(many), marks=pytest.mark.slow)], ids=["few", "all"]
    )


ROUNDING = 1e-11  # of the reference values, in NumPy
ACCURACY = 1e-6  # of CLARABEL
TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


class Table:
    """A table, nu and weights; the data of (15) and its objective, from the formula, in columns of norm about one."""

    def __init__(self, X, nu, a, c, w=None):
        self.X, self.nu, self.a, self.c, self.w = X, nu, a, c, w
        n = len(X)
        self.p = np.full(n, 1.0 / n) if w is None else w / w.sum()
        data = X - self.p @ X
        data -= self.p @ data
        self.ridge, self.l1 = a, c
        if nu < 1.0:
            data = np.column_stack([data, np.ones(n)])
            self.ridge, self.l1 = np.append(a, (nu / (1.0 - nu)) ** 0.5), np.append(c, 0.0)
        self.units = np.sqrt(self.p @ data**2 + self.ridge**2 + self.l1**2)
        self.units[self.units == 0.0] = 1.0
        self.data = data / self.units
        self.ridge, self.l1 = self.ridge / self.units, self.l1 / self.units

    @property
    def penalty(self):
        return dc.Penalty(self.a, self.c)

    def value_of(self, U):
        """The least objective of (15) along the ray of UU', for columns of norm about one."""
        V = U @ U.T
        gain = self.p @ np.sqrt(np.sum((self.data @ U) ** 2, axis=1))
        l1 = self.l1 @ np.abs(V) @ self.l1
        cost = self.p @ np.sum((self.data @ U) ** 2, axis=1) + self.ridge**2 @ np.diag(V) + l1
        return 1.0 - gain**2 / cost if cost > 0.0 else 1.0

    def moment(self, u):
        return self.data.T @ ((self.p * u)[:, None] * self.data)

    def diagonal_value(self):
        """The objective of the best diagonal V found by reweighting; any number of steps gives a valid value."""
        cost = self.p @ self.data**2 + self.ridge**2 + self.l1**2
        v = np.ones(len(cost)) / len(cost)
        for _ in range(200):
            u = 1.0 / np.sqrt(np.maximum(self.data**2 @ v, 1e-300))
            v = v * ((self.p * u) @ self.data**2 / np.maximum(cost, 1e-300)) ** 2
            v /= max(v.sum(), 1e-300)
        return self.value_of(np.diag(np.sqrt(v)))

    def optimum(self):
        """CLARABEL's optimal value of (15), and the value of its V, which is above the optimum."""
        D = len(self.l1)
        V = cp.Variable((D, D), PSD=True)
        gain = self.p @ cp.sqrt(cp.sum(cp.multiply(self.data @ V, self.data), axis=1))
        A = self.data.T @ (self.p[:, None] * self.data) + np.diag(self.ridge**2)
        l1 = cp.sum(cp.multiply(np.outer(self.l1, self.l1), cp.abs(V)))
        problem = cp.Problem(cp.Minimize(1 - 2 * gain + cp.trace(A @ V) + l1))
        problem.solve(solver="CLARABEL")
        values, Q = np.linalg.eigh((V.value + V.value.T) / 2)
        return problem.value, self.value_of(Q * np.sqrt(np.maximum(values, 0.0)))

    def least_t(self, u):
        """Return the least t with M <= t (A + C + Diag(c)^2) for a C in the dual box, an SDP, and C."""
        D, c = len(self.l1), self.l1
        t, Z = cp.Variable(nonneg=True), cp.Variable((D, D), symmetric=True)
        A = self.data.T @ (self.p[:, None] * self.data) + np.diag(self.ridge**2 + c**2)
        box = np.outer(c, c) - np.diag(c**2)
        constraints = [t * A + Z - self.moment(u) >> 0, cp.abs(Z) <= t * box]
        cp.Problem(cp.Minimize(t), constraints).solve(solver="CLARABEL", **TIGHT)
        return float(t.value), Z.value / max(float(t.value), 1e-300)


def wide_table(seed, n_range=(8, 20), d_range=(20, 40)):
    """Small random wide table: equal, negated or constant columns, any units, heavy tails."""
    rng = np.random.default_rng([2017, 31, seed])
    n, d = int(rng.integers(n_range[0], n_range[1] + 1)), int(rng.integers(d_range[0], d_range[1] + 1))
    X = rng.standard_t(2, (n, d)) if seed % 4 == 1 else rng.standard_normal((n, d))
    if seed % 3 == 0:
        X = X + 1.5 * rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    if seed % 3 == 1:
        X[:, : d // 5] += 1.2 * rng.choice([-1.0, 1.0], n)[:, None]
    copies = rng.integers(0, d, d // 4)
    if seed % 2:
        X[:, rng.permutation(d)[: len(copies)]] = X[:, copies] * rng.choice([-1.0, 1.0], len(copies))
    X /= np.std(X, axis=0)
    a = np.sqrt(rng.choice([0.02, 0.3, 1.0])) * (np.ones(d) if seed % 5 < 2 else rng.choice([0.0, 0.5, 1.0, 2.0], d))
    c = np.sqrt(rng.choice([0.005, 0.05, 0.2, 0.4])) * (np.ones(d) if seed % 5 < 3 else rng.uniform(0.5, 1.5, d))
    if seed % 7 == 0:
        c[rng.integers(0, d, 2)] = 0.0
    if seed % 6 == 0:
        units = 10.0 ** rng.uniform(-6, 6, d)
        X, a, c = X * units, a * (units if seed % 12 else 1.0), c * (units if seed % 12 else 1.0)
    if seed % 8 == 3:
        X[:, rng.integers(0, d, 3)] = 2.0
    nu = (1.0, 0.7, 0.4)[int(rng.integers(3))]
    w = rng.choice([0.25, 1.0, 2.0], n) if seed % 5 == 4 else None
    return Table(X, nu, a, c, w)


@pytest.fixture
def small_cores(monkeypatch):
    """Enable the working-set solver also for few columns, and count the bounds certified from a working set."""
    monkeypatch.setattr(working_set, "INITIAL_SIZE", 5)
    monkeypatch.setattr(direction_bounds, "MIN_WIDE_SIZE", 10)
    monkeypatch.setattr(solver, "STRATEGIES", (solver.STRATEGIES[-1], solver.ONE_BLOCK))  # the working set first
    monkeypatch.setattr(race, "MIN_SLICE", 1e12)
    monkeypatch.setattr(race, "MAX_SLICE", 1e12)
    sizes, whole = [], working_set.check_kkt

    def watched(split, *given):
        look = whole(split, *given)
        if look.lower is not None:
            sizes.append(len(split.free) / len(split.problem.c))
        return look

    monkeypatch.setattr(working_set, "check_kkt", watched)
    return sizes


def hold_to_the_interior_point(seed, most_columns=40):
    """Check that the bounds contain CLARABEL's optimum, and that no diagonal V or single feature is better."""
    table = wide_table(seed, d_range=(20, most_columns))
    result = dc.low_rank(table.X, table.nu, table.penalty, tol=1e-4, time_limit=20.0, sample_weight=table.w)
    assert result.invalid_bound is None, seed
    value, above = table.optimum()
    assert result.lower <= above + ROUNDING, seed
    assert result.lower - ACCURACY <= value <= result.upper + ACCURACY, seed
    G = result.G.toarray() if scipy.sparse.issparse(result.G) else result.G
    U = G * table.units[:, None]
    most = np.sum(U**2, axis=1) >= np.median(np.sum(U**2, axis=1)) * 1.01  # fewer than half of the features
    for given in (result, scipy.sparse.csr_array(G @ G.T * np.outer(most, most))):
        judged = dc.certify_v(table.X, given, table.nu, table.penalty, sample_weight=table.w)
        assert judged.lower <= above + ROUNDING, seed
        assert judged.upper >= value - ACCURACY, seed
    assert table.value_of(U) <= result.upper + ROUNDING, seed
    assert result.upper <= table.diagonal_value() + 1.1e-4, seed
    assert result.upper <= min(table.value_of(e[:, None]) for e in np.eye(len(U))) + 1.1e-4, seed
    return result


@few_or_all(6, 200)
def test_brackets_of_wide_tables_hold_the_optimum_of_an_interior_point(small_cores, seeds):
    gaps = [hold_to_the_interior_point(seed, 24 if len(seeds) < 20 else 40).gap for seed in seeds]
    assert np.median(gaps) <= 1e-4
    assert len(small_cores) > len(seeds) / 4
    assert np.min(small_cores) < 0.8


# Working-set certificate


def posed(table):
    """Return problem (15) of a table, in the form of the solvers."""
    weights = None if table.w is None else table.p
    X = table.X if table.w is None else table.X - table.p @ table.X
    return direction_problem(as_data(X, warn=False) if table.w is None else X, table.nu, table.penalty, weights)


def weights_of_rows(table, problem, u):
    """Return weights of the rows, 0 for zero rows, and mean(1/u)."""
    u = np.where(problem.zero_rows, 0.0, problem.X.values_of_rows(u))
    return u, float(np.mean(np.where(problem.zero_rows, 0.0, 1.0 / np.maximum(u, 1e-300))))


def random_weights(rng, table, kind):
    """Return weights u: near those of a solution, between 1e-6 and 1e6, or arbitrary."""
    if kind == 0:
        U = rng.standard_normal((len(table.l1), 2))
        return 1.0 / np.maximum(np.linalg.norm(table.data @ U, axis=1), 0.05)
    return 10.0 ** rng.uniform(-6, 6, len(table.X)) if kind == 1 else rng.uniform(0.2, 2.0, len(table.X))


def random_cores(rng, problem):
    """Yield working sets of any size: the columns without an l1 weight, one more, some, all."""
    D = len(problem.c)
    free = np.flatnonzero(problem.c == 0.0)
    for size in (0, 1, int(rng.integers(D)), D):
        yield np.union1d(free, rng.permutation(D)[:size]).astype(np.intp)


def hold_to_the_semidefinite_program(seed):
    """Check that no working set certifies a t below the least one; return how many t just above it are certified."""
    rng = np.random.default_rng([2017, 32, seed])
    few = seed % 2 == 0
    table = wide_table(seed, (4, 9), (2, 5) if few else (6, 14))
    if seed % 9 == 0:
        table = Table(np.vstack([table.X - table.X.mean(axis=0), 0.0 * table.X[:2]]), 1.0, table.a, table.c)
    problem, proved = posed(table), 0
    u, inverse_mean = weights_of_rows(table, problem, random_weights(rng, table, seed % 3))
    if not np.isfinite(inverse_mean):
        return 0
    points = problem.X.values_of_points(u)
    least, Z = table.least_t(points / points.max())
    least *= points.max()
    ratio = problem.coordinates.scale[: len(table.a)] * table.units[: len(table.a)]
    ratio = np.append(ratio, problem.coordinates.scale[-1] * table.units[-1]) if table.nu < 1.0 else ratio
    best = Z * np.outer(ratio, ratio)
    for chosen in random_cores(rng, problem):
        D = len(chosen)
        anything = 3.0 * np.outer(problem.c[chosen], problem.c[chosen]) * rng.standard_normal((D, D))
        for C in (best[np.ix_(chosen, chosen)], anything, 100.0 * best[np.ix_(chosen, chosen)]):
            core = block_problem(problem, chosen)
            for t in least * (1.0 - np.array([0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 2e-6])):
                assert check_kkt(core, u, C, t).lower is None, (seed, t)
            for t in least * (1.0 + np.array([1e-5, 1e-2, 0.3])):
                look = check_kkt(core, u, C, t)
                proved += look.lower is not None
                assert look.lower is None or look.lower <= 1.0 - t * inverse_mean
                assert look.directions is None or np.isfinite(look.directions).all()
                assert not np.isin(look.violated, chosen).any()
    return proved


@few_or_all(6, 300)
def test_no_working_set_proves_more_than_the_semidefinite_program(seeds):
    proved = [hold_to_the_semidefinite_program(seed) for seed in seeds]
    assert np.count_nonzero(proved) > 0.6 * len(seeds)
    assert sum(proved) > 100


def test_a_multiplier_between_the_working_set_and_one_column_stays_in_its_box():
    """One violated column, or a working set of one: arrays of one row, whose transpose shares their memory."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 7))
    X[:, 6] += 3.0 * X[:, 0]
    problem = direction_problem(as_data(X), 1.0, dc.Penalty(0.3, [0.1, 0.1, 0.1, 0.1, 0.1, 3.0, 0.1]))
    u, t = rng.uniform(0.2, 2.0, 12), 2.5
    for chosen in (np.arange(6), np.array([2]), np.array([0]), np.arange(3)):
        core, tried = block_problem(problem, chosen), []
        T = problem.X.array()[:, chosen].T @ (((u - t) / 12)[:, None] * problem.X.array()[:, core.penalized])
        box = t * np.outer(problem.c[chosen], problem.c[core.penalized])

        def between(P, given, core=core, tried=tried, T=T):
            np.testing.assert_allclose(given, T, atol=1e-12)
            tried.append(off_diagonal_multipliers(core, P, given, t))
            return tried[-1]

        eliminate(core, u, t, None, between)
        for multiple in (1.0, 100.0, -1.0):
            found = eliminate(core, u, t, None, lambda *_, tC=multiple * tried[0]: tC)
            assert np.all(np.abs(found.tC) <= box * (1 + 1e-15))
            np.testing.assert_allclose(found.L @ found.K, found.tC - T, atol=1e-8)
        assert np.any(np.abs(tried[0] - T) > 1e-3)


def least_t_of_pairs(problem, u, t):
    """Whether S is positive semidefinite at t for a C in the dual box, exactly; only columns 2k, 2k + 1 share rows."""
    t, n = Fraction(t), len(u)
    for k in range(0, len(problem.c), 2):
        x, y = ([Fraction(v) for v in problem.X.array()[:, j]] for j in (k, k + 1))
        gram_weights = [(t - Fraction(v)) / n for v in u]
        first = sum(w * v * v for w, v in zip(gram_weights, x, strict=True))
        second = sum(w * v * v for w, v in zip(gram_weights, y, strict=True))
        cross = sum(w * v * z for w, v, z in zip(gram_weights, x, y, strict=True))
        first += t * (Fraction(problem.a[k]) ** 2 + Fraction(problem.c[k]) ** 2)
        second += t * (Fraction(problem.a[k + 1]) ** 2 + Fraction(problem.c[k + 1]) ** 2)
        excess = max(abs(cross) - t * Fraction(problem.c[k]) * Fraction(problem.c[k + 1]), Fraction(0))
        if first < 0 or second < 0 or excess**2 > first * second:
            return False
    return True


def unrelated_pairs(seed):
    """Pairs of columns on rows of their own: S is positive semidefinite if each 2 x 2 block is."""
    rng = np.random.default_rng([2017, 33, seed])
    pairs, rows = int(rng.integers(1, 5)), 3
    X = np.zeros((pairs * rows, 2 * pairs))
    for k in range(pairs):
        x = rng.standard_normal(rows)
        X[k * rows : (k + 1) * rows, 2 * k] = x
        X[k * rows : (k + 1) * rows, 2 * k + 1] = rng.choice([-1.0, 1.0]) * x + rng.choice([0.0, 0.3]) * rng.random(
            rows
        )
    a = np.full(2 * pairs, 0.4) * rng.choice([0.5, 1.0], 2 * pairs)
    c = rng.uniform(0.05, 0.4, 2 * pairs)
    problem = direction_problem(X, 1.0, dc.Penalty(a, c))
    return rng, problem, rng.uniform(0.3, 2.0, len(X)) * rng.choice([1.0, 1e-6, 1e6])


def hold_to_fractions(seed, sizes):
    """The smallest double t at which a working set certifies its bound is feasible in exact arithmetic."""
    rng, problem, u = unrelated_pairs(seed)
    D, edges = len(problem.c), 0
    for size in (int(fraction * D) if fraction >= 0 else 1 for fraction in sizes):
        chosen = np.sort(rng.permutation(D)[:size])
        exactly = (problem.X.array()[:, chosen].T @ (u[:, None] * problem.X.array()[:, chosen])) / len(u)
        C = np.sign(exactly) * np.outer(problem.c[chosen], problem.c[chosen])

        def proves(t, chosen=chosen, C=C, exactly=exactly):
            A = problem.X.array()[:, chosen].T @ problem.X.array()[:, chosen] / len(u)
            inside = np.where(np.abs(exactly / t - A) < np.abs(C), exactly / t - A, C)
            return check_kkt(block_problem(problem, chosen), u, inside, t).lower is not None

        high = 4.0 * float(u.max())
        low = high / 1024.0
        assert proves(high)
        for _ in range(70):
            middle = (low + high) / 2.0
            if middle in (low, high):
                break
            low, high = (low, middle) if proves(middle) else (middle, high)
        assert least_t_of_pairs(problem, u, high), (seed, size)
        edges += not least_t_of_pairs(problem, u, high * (1.0 - 1e-9))
    return edges


@few_or_all(6, 60)
def test_the_least_number_that_is_proved_is_feasible_in_fractions(seeds):
    """Without the allowance for rounding, the last bit would decide."""
    assert sum(hold_to_fractions(seed, (0.0, -1, 0.5, 1.0)[seed % 2 :: 2]) for seed in seeds) > len(seeds)


def test_weights_whose_products_underflow_leave_no_pair_out():
    """G_jk / (c_j c_k) is NaN if c_j c_k is 0 or sums overflow: such a pair counts as violated."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 2))
    X[:, 1] = X[:, 0]
    problem = direction_problem(as_data(X), 1.0, dc.Penalty(0.3, 1e-160))
    u = rng.uniform(0.2, 2.0, 3000)
    core, C = block_problem(problem, np.zeros(0, dtype=np.intp)), np.zeros((0, 0))
    A, M = problem.X.second_moment() + np.diag(problem.a**2), problem.X.weighted_gram(u)
    least = float(np.linalg.eigvals(np.linalg.solve(A, M)).real.max())
    assert check_kkt(core, u, C, 0.98 * least).lower is None


@pytest.mark.parametrize("size", [1e-100, 1e-165, 1e-170, 1e-310])
@pytest.mark.parametrize("least", [10, 200], ids=["working set", "components"])
def test_brackets_with_tiny_weights_are_those_without(monkeypatch, size, least):
    monkeypatch.setattr(direction_bounds, "MIN_WIDE_SIZE", least)
    rng = np.random.default_rng(3)
    X = np.zeros((12, 30))
    for column in X.T:
        column[rng.choice(12, 4, replace=False)] = [1.0, -1.0, 2.0, -2.0]
    found = dc.low_rank(X, penalty=dc.Penalty(0.3, size), tol=1e-4)
    assert found.invalid_bound is None
    ridge = dc.low_rank(X, penalty=dc.Penalty(0.3), tol=1e-6)
    assert found.lower <= ridge.upper + ROUNDING
    assert found.upper >= ridge.lower - ROUNDING


# Bad tables


def bad_tables():
    """Tables of thousands of columns that are equal up to sign, repeated, constant or in any units."""
    rng = np.random.default_rng(5)
    X, x = rng.standard_normal((30, 2000)), rng.standard_normal(30)
    plain = {"lam": 0.1, "ridge": 0.3}
    some = np.where(np.arange(2000) % 2 == 0, 3.0, X)
    alone = np.where(np.arange(2000) == 7, X, 2.0)
    return {
        "equal up to sign": (np.outer(x, rng.choice([-1.0, 1.0], 1000)), plain),
        "repeated": (np.tile(X[:, :20], 50), plain),
        "half of them constant": (some, plain),
        "all but one constant": (alone, plain),
        "ridge by column, some zero": (X, {"lam": 0.05, "ridge": rng.choice([0.0, 0.3, 1.0], 2000)}),
        "all alive": (X, {"lam": 1e-6, "ridge": 0.3}),
        "none alive": (X, {"lam": 1e6, "ridge": 0.3}),
        "heavy tails": (rng.standard_t(1.2, (30, 2000)), plain),
        "units": (X * 10.0 ** rng.uniform(-6, 6, 2000), plain),
        "two points": (X[:2], plain),
        "many": (rng.standard_normal((20, 50_000)), plain),
    }


@pytest.mark.parametrize("name", bad_tables())
def test_a_short_time_leaves_a_valid_bracket_and_labels_to_read(name):
    X, weights = bad_tables()[name]
    result = dc.low_rank(X, **weights, tol=1e-3, time_limit=0.1)
    assert result.invalid_bound is None
    assert 0.0 <= result.lower <= result.upper <= 1.0 + ROUNDING
    assert result.seconds <= 1.5
    labels = dc.rounding.kmeans_centered(result.F)
    assert set(labels) <= {-1.0, 1.0}
    data, size = X - X.mean(axis=0), X.shape[1]
    a, c = np.sqrt(np.broadcast_to(weights["ridge"], size)), np.sqrt(weights["lam"])
    gains = np.mean(np.abs(data), axis=0) ** 2 / np.maximum(np.mean(data**2, axis=0) + a**2 + c**2, 1e-300)
    assert result.upper <= 1.0 - gains.max() + 1e-8  # the rounding of 50 000 columns
    assert result.lower <= 1.0 - gains.max() + ROUNDING


def test_a_row_that_is_zero_on_the_working_set_alone_keeps_its_weight():
    X = np.zeros((10, 6))
    X[:8, :3] = np.where(np.arange(8) % 2, 1.0, -1.0)[:, None] + 0.1 * np.random.default_rng(0).standard_normal((8, 3))
    X[:8] -= X[:8].mean(axis=0)
    X[8:, 3] = [1.0, -1.0]
    problem = direction_problem(X, 1.0, dc.Penalty(lam=0.1, ridge=0.3))
    small, U = problem.restrict(np.arange(3)), np.eye(3, 1)
    u = best_dual(problem, small, small.rescale(U), lambda _: [np.zeros((3, 3))])[1]
    assert small.zero_rows[8:].all()
    assert not problem.zero_rows.any()
    assert np.all(u > 0.0)


def test_many_lassos_are_solved_as_one_by_one():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60)) + 0.8 * rng.standard_normal((40, 1))
    P = X.T @ X / 40 + 0.1 * np.eye(60)
    T, box = 0.8 * rng.standard_normal((60, 300)), rng.uniform(0.5, 1.5, (60, 300))
    box[:, 0], box[:, 1] = 100.0, 1e-3  # no violated entry, and nearly all of them
    Z = np.linalg.solve(P, T - lasso_residuals(P, T, box))
    np.testing.assert_allclose(Z[:, 0], 0.0, atol=1e-5)
    assert np.count_nonzero(np.abs(Z[:, 1]) > 1e-4) > 50
    values = 0.5 * np.sum(Z * (P @ Z), axis=0) - np.sum(Z * T, axis=0) + np.sum(box * np.abs(Z), axis=0)
    for j in (1, *rng.integers(2, 300, 8)):
        z = cp.Variable(60)
        cost = cp.quad_form(z, cp.psd_wrap(P)) / 2 - T[:, j] @ z + box[:, j] @ cp.abs(z)
        least = cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL")
        assert least - 1e-6 <= values[j] <= 0.95 * least + 1e-6


@pytest.mark.parametrize(("n", "d"), [(500, 300), (300, 260)])
def test_blocks_are_not_given_up_while_what_they_certified_stands_though_the_last_step_screened_no_pairs(n, d):
    """Independent columns, 20 of them with two groups: given up after 60 steps, a gap of a fifth was left after 400."""
    rng = np.random.default_rng(0)
    y, X = rng.choice([-1.0, 1.0], n), rng.standard_normal((n, d))
    X[:, :20] += 0.8 * y[:, None]
    X = X - X.mean(axis=0)
    result = dc.low_rank(X / X.std(axis=0), lam=0.02, ridge=0.05, tol=1e-9, rtol=1e-3, max_iter=400)
    assert result.status is dc.Status.OPTIMAL
