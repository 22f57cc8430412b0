"""Bags, order, sizes and rows: labels obey, brute force agrees, and no multipliers prove a false bound."""

from itertools import product

import numpy as np
import pytest
from oracles import labelings_values

import diffrac_cvx as dc
from diffrac_cvx.certificates.labels import LabelDual, LabelProblem, Products
from diffrac_cvx.solvers.exact.feasible import FeasibleSigns

KINDS = ("at_most", "bags", "sizes", "order", "equal", "all")


def random_rows(rng, kind, n):
    """Return keywords of linear constraints, and whether labels satisfy them, by what the words say."""
    keywords, tests = {}, []
    if kind == "at_most":
        A, b = rng.integers(-2, 3, (3, n)) * rng.choice([1.0, 0.1, 3e5], (3, 1)), rng.integers(0, 3, 3) + 0.5
        b = b * np.abs(A).max(axis=1)
        keywords["at_most"] = A, b
        tests.append(lambda y: np.all(A @ y <= b + 1e-9 * np.abs(A).max(axis=1)))  # up to rounding
    if kind in ("bags", "all"):
        bags = [rng.permutation(n)[: rng.integers(1, 4)] for _ in range(rng.integers(1, 4))]
        keywords["bags"] = bags
        tests.append(lambda y: all(np.any(y[bag] > 0) for bag in bags))
    if kind in ("sizes", "all"):
        low = int(rng.integers(0, n // 2 + 1))
        high = low + int(rng.integers(0, 3)) if kind == "sizes" else n - 1
        keywords["sizes"] = low, high
        tests.append(lambda y: low <= np.sum(y > 0) <= high)
    if kind in ("order", "all"):
        chains = [rng.permutation(n)[: rng.integers(2, 5)] for _ in range(rng.integers(1, 3))]
        keywords["order"] = chains
        tests.append(lambda y: all(np.all(np.diff(y[chain]) >= 0) for chain in chains))
    if kind == "equal":
        parts = rng.integers(0, 2, (2, n)) if n > 4 else np.ones((1, n), dtype=int)
        E = parts * rng.choice([1.0, 0.7])
        f = E @ rng.choice([-1.0, 1.0], n)
        keywords["equal"] = E, f
        tests.append(lambda y: np.allclose(E @ y, f, atol=1e-9))
    return keywords, lambda y: all(test(y) for test in tests)


def instance(seed, kind):
    rng = np.random.default_rng([69, seed, KINDS.index(kind)])
    n, d = int(rng.integers(4, 10)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    keywords, obeys = random_rows(rng, kind, n)
    pairs, known = rng.permutation(n)[:2], [None] * n
    is_linked, is_known = rng.random(2) < 0.4
    if is_linked:
        keywords["must_link" if rng.random() < 0.6 else "cannot_link"] = [tuple(pairs)]
    if is_known:
        known[int(rng.integers(n))], known[int(rng.integers(n))] = -1, 1
        keywords["labels"] = known
    weights = rng.integers(0, 3, n).astype(float) if rng.random() < 0.4 else None
    weights = None if weights is not None and np.sum(weights > 0) < 3 else weights

    def obeys_all(y):
        linked = y[pairs[0]] * y[pairs[1]] == (1.0 if "must_link" in keywords else -1.0) if is_linked else True
        return linked and all(one is None or y[i] == one for i, one in enumerate(known)) and obeys(y)

    lam = 0.02 if rng.random() < 0.3 else 0.0
    return X, float(rng.choice([0.0, 0.3, 1.0])), float(rng.choice([0.1, 0.5])), lam, weights, keywords, obeys_all


def check(seed, kind):
    """Check labels, bounds and certificate against all labels; return whether any labels obey."""
    X, nu, ridge, lam, weights, keywords, obeys = instance(seed, kind)
    Y, values = labelings_values(X, nu, ridge, lam, weights)
    Y, values = np.vstack([Y, -Y]), np.concatenate([values, values])
    values = values[np.array([obeys(y) for y in Y])]
    if not len(values):
        with pytest.raises(dc.DataError, match=r"no labels satisfy|contradict"):
            dc.optimal_labels(X, constraints=dc.Constraints(**keywords))
        return False
    found = dc.optimal_labels(
        X, nu, lam=lam, ridge=ridge, constraints=dc.Constraints(**keywords), sample_weight=weights, tol=1e-5
    )
    assert obeys(found.labels)
    assert found.lower <= values.min() + 1e-12
    assert found.upper == pytest.approx(values.min(), abs=1e-4 if lam else 1e-5)
    assert found.gap <= 1e-5
    assert dc.check_certificate(X, found).lower == found.lower
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_labels_under_constraints_are_those_of_brute_force(kind):
    assert sum(check(seed, kind) for seed in range(6)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_labels_under_constraints_are_those_of_brute_force_300_times(kind):
    assert sum(check(seed, kind) for seed in range(6, 66)) >= 30


def test_cutting_planes_alone_give_the_same_labels(cuts_first):
    del cuts_first
    assert sum(check(seed, kind) for kind in KINDS for seed in (6, 7)) >= 6


@pytest.mark.parametrize("kind", KINDS)
def test_no_multipliers_prove_a_false_bound(kind):
    """Any mu, products and multipliers of equations, for any constraints: lifted until they prove something."""
    proved = 0
    for seed in range(12):
        X, nu, ridge, _, weights, keywords, obeys = instance(seed, kind)
        constraints, (n, d) = dc.Constraints(**keywords), X.shape
        Y, values = labelings_values(X, nu, ridge, 0.0, weights)
        values = np.concatenate([values, values])[np.array([obeys(y) for y in np.vstack([Y, -Y])])]
        if not len(values):
            continue
        chunklets, linear = constraints.chunklets_of(n), constraints.linear_of(n)
        counts = np.ones(n) if weights is None else weights
        columns = np.ones(d, dtype=bool)
        problem = LabelProblem(
            X, nu, np.full(d, ridge**0.5), np.zeros(d), counts, *chunklets[:2], columns, linear, chunklets.labeled
        )
        rng, m = np.random.default_rng(seed), len(problem.w)
        k, n_equal = len(linear.at_most.right), len(linear.equal.right)
        for _ in range(10):
            size = 4 * k
            products = Products(
                rng.integers(0, max(k, 1), size),
                rng.integers(0, m, size),
                rng.choice(np.array([-1, 1], np.int8), size),
                rng.exponential(0.02, size) * (rng.random(size) < 0.5),
            )
            equal = rng.normal(0.0, 0.1, (n_equal, m)) * rng.choice([0.0, 1.0, 10.0])
            mu = rng.normal(0.0, 0.1, m)
            M = problem.dual_matrix(LabelDual(mu, None, None, products, equal))[0]
            metric = np.diag(np.append(np.ones(m), np.zeros(d)))
            for _ in range(60):  # lift mu until M is positive definite
                if np.linalg.eigvalsh(M)[0] > 1e-9:
                    break
                mu, M = mu + 0.05, M + 0.05 * metric
            lower = problem.lower_bound(LabelDual(mu, None, None, products, equal))
            proved += lower > -np.inf
            assert lower <= values.min() + 1e-12
    assert proved >= 20


@pytest.mark.parametrize("kind", ["bags", "order", "sizes", "equal"])
def test_labels_for_scores_are_the_best_ones_by_closed_forms_and_by_programs(kind):
    rng = np.random.default_rng(3)
    n = 7
    keywords = {
        "bags": {"bags": [[0, 1, 2], [3, 4]]},
        "order": {"order": [[2, 0, 1], [5, 6]]},
        "sizes": {"sizes": (2, 3)},
        "equal": {"equal": (np.kron(np.eye(2, 2), np.ones((1, 3))) @ np.eye(6, 7), [1.0, -1.0]), "bags": [[0, 6]]},
    }[kind]
    linear = dc.Constraints(**keywords).linear_of(n).on_signs(np.arange(n), np.ones(n), n, n + 1)
    best, Y = FeasibleSigns(linear, n), np.array(list(product((-1.0, 1.0), repeat=n)))
    Y = np.column_stack([Y, np.ones(len(Y))])
    Y = Y[[not linear.violated(y) for y in Y]]
    for _ in range(20):
        scores = rng.standard_normal(n + 1)
        found = best(scores)
        assert not linear.violated(found)
        assert found @ scores == pytest.approx((Y @ scores)[:].max() if found[n] == 1.0 else np.nan)


def test_neither_the_order_of_points_nor_the_unit_of_a_row_matters_and_known_labels_are_a_constraint():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((14, 3))
    A, b = rng.integers(-1, 2, (3, 14)).astype(float), np.array([1.0, 2.0, 1.0])
    value = dc.optimal_labels(X, ridge=0.3, constraints=dc.Constraints(at_most=(A, b)), tol=1e-6).upper
    order = rng.permutation(14)
    permuted = dc.Constraints(at_most=(A[:, order], b))
    scaled = dc.Constraints(at_most=(A * [[3.0], [1e-30], [1e30]], b * [3.0, 1e-30, 1e30]))
    assert dc.optimal_labels(X[order], ridge=0.3, constraints=permuted, tol=1e-6).upper == pytest.approx(
        value, abs=2e-6
    )
    assert dc.optimal_labels(X, ridge=0.3, constraints=scaled, tol=1e-6).upper == pytest.approx(value, abs=2e-6)

    known = dc.Constraints(at_most=(A, b), labels=[1, None, -1] + [None] * 11)
    stated = dc.Constraints(at_most=(np.vstack([A, np.eye(3, 14)[2], -np.eye(3, 14)[0]]), np.append(b, [-1.0, -1.0])))
    found = [dc.optimal_labels(X, ridge=0.3, constraints=one, tol=1e-6).upper for one in (known, stated)]
    assert found[0] == pytest.approx(found[1], abs=2e-6)
    assert found[0] >= value - 2e-6  # a constraint more


def test_bags_of_digits_are_proved_at_the_root():
    X, y = dc.datasets.make_planted(90, 6, 4, rng=1)[:2]
    y = np.where(y == y[0], -1.0, 1.0)
    order = np.argsort(y, kind="stable")
    positive, negative = order[y[order] > 0], order[y[order] < 0]
    bags = [[positive[k], *negative[3 * k : 3 * k + 3]] for k in range(12)]
    labels = [None] * len(X)
    for i in negative[36:]:
        labels[i] = -1
    constraints = dc.Constraints(bags=bags, labels=labels)
    found = dc.optimal_labels(X, 0.0, ridge=0.3, constraints=constraints)
    assert found.status is dc.Status.OPTIMAL
    assert all(np.any(found.labels[bag] > 0) for bag in bags)


def test_labels_are_found_whatever_the_tolerance_of_an_integer_program_is():
    """Rows with small coefficients, that a program leaves out or violates, and labels that satisfy them."""
    large = np.array([[1e3, 1e12, -10.0, -1e-6, 0, -1e5, 0, -1e-18], [1e-10, 0, -1e-15, 1e4, 0, 0, 1e3, -1e17]])
    third = 1.0 / 3.0
    small = np.array(
        [
            [0, -0.2, 1, 1e-9, -1, 0, -1, 0.1, 1],
            [-0.2, 1e-7, third, -1, third, 1e-8, 0, 1e-9, -1e-7],
            [-1e-7, 1e-8, third, -0.2, 3e-7, 0, third, 0, third],
        ]
    )
    for A, b in ((large, [-1.0000001e12, 1e17]), (small, [-2.1, 0.79999979, 0.53333354])):
        Y = np.array(list(product((-1.0, 1.0), repeat=A.shape[1])))
        linear = dc.Constraints(at_most=(A, b)).linear_of(A.shape[1])
        assert 0 < np.sum([not linear.violated(y) for y in Y]) < len(Y)
        X = np.random.default_rng(0).standard_normal((A.shape[1], 2))
        found = dc.optimal_labels(X, ridge=0.3, constraints=dc.Constraints(at_most=(A, b)))
        assert not linear.violated(found.labels)


@pytest.mark.parametrize("unit", [1e-320, 1e-250, 1e-90, 1e90])
def test_a_right_side_of_any_size_is_that_of_its_row(unit):
    X, A = np.random.default_rng(0).standard_normal((6, 2)), unit * np.array([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]])
    for b, allowed in ((-3.0 * unit, 8), (-5.0 * unit, 0), (1e100, 64), (-1e100, 0)):
        constraints = dc.Constraints(at_most=(A, [b]))
        linear = constraints.linear_of(6)
        Y = list(product((-1.0, 1.0), repeat=6))
        assert np.sum([not linear.violated(np.array(y)) for y in Y]) == allowed
        if allowed:
            found = dc.optimal_labels(X, ridge=0.3, constraints=constraints)
            assert dc.check_certificate(X, found).lower == found.lower
        else:
            with pytest.raises(dc.DataError, match="no labels satisfy"):
                dc.optimal_labels(X, ridge=0.3, constraints=constraints)


@pytest.mark.parametrize(
    "keywords",
    [
        {"must_link": [(1, 2)], "order": [[1, 2]]},
        {"at_most": (np.zeros((1, 9)), [0.0])},
        {"bags": [[0, 1]], "labels": [1, 1] + [None] * 7},
        {"equal": (np.array([[1.0, 1.0] + [0.0] * 7]), [0.0])},
    ],
)
def test_cutting_planes_prove_bounds_if_a_row_says_nothing_or_all_rows_are_equations(cuts_first, keywords):
    del cuts_first
    X = np.random.default_rng(2).standard_normal((9, 3))
    found = dc.optimal_labels(X, ridge=0.1, constraints=dc.Constraints(**keywords), tol=1e-6)
    assert found.certificate.proofs[0].diagonal is not None
    assert dc.check_certificate(X, found).lower == found.lower


def test_rows_that_contradict_each_other_are_named_and_no_others():
    bags = [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(dc.DataError, match=r"no labels satisfy bags\[1\] and the known labels\."):
        dc.optimal_labels(
            np.eye(6), constraints=dc.Constraints(bags=bags, sizes=(0, 5), labels=[None, 1, -1, -1, None, None])
        )
    with pytest.raises(dc.DataError, match=r"no labels satisfy equal\[0\]\."):  # four signs have an even sum
        dc.optimal_labels(
            np.eye(6), constraints=dc.Constraints(bags=bags, equal=(np.eye(1, 6) + 2.0 * np.eye(1, 6, 1), [0.5]))
        )


@pytest.mark.parametrize("solve", [dc.low_rank, dc.fista, dc.certify_v, dc.v_space])
def test_solvers_of_directions_refuse_rows_and_name_what_takes_them(solve):
    X = np.random.default_rng(0).standard_normal((8, 2))
    arguments = (X, np.eye(2)) if solve is dc.certify_v else (X,)
    with pytest.raises(dc.ParameterError, match="only optimal_labels, DiffracClustering, penalized_nu"):
        solve(*arguments, constraints=dc.Constraints(bags=[[0, 1]]))
