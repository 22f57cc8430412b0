"""Linear constraints, products and triangles in CVXPY: between the relaxation without them and the best labels."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import labelings_values, y_objective

import diffrac_cvx as dc
from diffrac_cvx.certificates.labels import LabelDual, LabelProblem, Products
from diffrac_cvx.points.linear_algebra import psd_factor

TOL = 1e-6  # of CLARABEL, in the values compared here
NU, RIDGE = 0.7, 0.2
KINDS = ("bags", "order", "sizes", "equal", "at_most")
BUILDERS = {
    "penalized_nu": lambda X, **more: dc.penalized_nu(X, NU, ridge=RIDGE, **more),
    "lifted": lambda X, **more: dc.lifted(X, NU, ridge=RIDGE, **more),
    "constrained_alpha": lambda X, **more: dc.constrained_alpha(X, 0.25, **more),
}
BAGS = dc.Constraints(bags=[[0, 1, 2], [4, 5]], sizes=(1, 5), order=[[6, 7, 2]], cannot_link=[(0, 3)])
X8 = np.random.default_rng(4).standard_normal((8, 3))


def keywords_of(kind, y, rng):
    """Return linear constraints of a kind that labels y satisfy."""
    n = len(y)
    positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    if kind == "bags":
        return {"bags": [[rng.choice(positive), *rng.choice(negative, 2, replace=False)] for _ in range(3)]}
    if kind == "order":
        return {"order": [[*rng.choice(negative, 2, replace=False), *rng.choice(positive, 2, replace=False)]]}
    if kind == "sizes":
        return {"sizes": (len(positive) - int(rng.integers(2)), len(positive) + int(rng.integers(2)))}
    A = rng.integers(-1, 2, (2, n)).astype(float)
    return {kind: (A, A @ y + (1.0 if kind == "at_most" else 0.0))}


def instance(seed):
    """Return a table, constraints that some labels satisfy, and the least value of Eq. (9) at labels that do."""
    rng = np.random.default_rng([2017, seed])
    n, kind = 8 + seed % 7, KINDS[seed % 5]
    X = rng.standard_normal((n, int(rng.integers(1, 4))))
    y = rng.permutation(np.where(np.arange(n) < n // 2, -1.0, 1.0))
    keywords, known, pair = keywords_of(kind, y, rng), [None] * n, rng.permutation(n)[:2]
    if seed % 2:
        known[int(pair[0])] = int(y[pair[0]])
        known[int(np.flatnonzero(y != y[pair[0]])[0])] = -int(y[pair[0]])
        keywords["labels"] = known
    if seed % 3 == 0:
        keywords["must_link" if y[pair[0]] == y[pair[1]] else "cannot_link"] = [tuple(pair)]
    constraints = dc.Constraints(**keywords)
    Y, values = labelings_values(X, NU, RIDGE, 0.0, None)
    Y, values = np.vstack([Y, -Y]), np.concatenate([values, values])
    chunklets, linear = constraints.chunklets_of(n), constraints.linear_of(n)
    satisfied = [obeys(one, chunklets, linear, known) for one in Y]
    return X, constraints, float(values[satisfied].min())


def obeys(y, chunklets, linear, known):
    """Return whether labels satisfy constraints."""
    signs = y * chunklets.sign
    linked = all(len(set(signs[chunklets.membership == g])) == 1 for g in range(chunklets.n_chunklets))
    return linked and all(one in (None, y[i]) for i, one in enumerate(known)) and not linear.violated(y)


def check(seed):
    """Check the bounds of all forms of an instance against its labels; return the lower bounds."""
    X, constraints, best = instance(seed)
    free = dc.solve(dc.penalized_nu(X, NU, ridge=RIDGE, constraints=constraints.without_linear), "CLARABEL").value
    plain = dc.penalized_nu(X, NU, ridge=RIDGE, constraints=constraints)
    tight = dc.penalized_nu(X, NU, ridge=RIDGE, constraints=constraints, products=True)
    results = [dc.solve(one, "CLARABEL") for one in (plain, tight, dc.triangles(plain), dc.triangles(tight))]
    for result in results:
        assert result.lower <= best + 1e-12
        assert result.upper >= best - 1e-12
        assert result.lower <= result.value <= result.upper
        assert result.value - result.lower <= 1e-5 or result.value == result.upper
        labels = result.certificate.labels
        chunklets, known = constraints.chunklets_of(len(X)), [None] * len(X)
        assert obeys(labels, chunklets, constraints.linear_of(len(X)), known)
        checked = dc.check_certificate(X, result)
        assert (checked.lower, checked.upper) == (result.lower, pytest.approx(result.upper, abs=1e-12))
    lowers = [result.lower for result in results]
    assert free - TOL <= lowers[0] <= min(lowers) + TOL
    assert max(lowers) <= lowers[3] + TOL
    return [*lowers, best]


@pytest.mark.parametrize("name", ["penalized_nu", "lifted"])
@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("kind", [*KINDS, "a bag of one"])
def test_the_point_of_a_result_is_feasible_and_has_its_value(name, solver, kind):
    rng = np.random.default_rng(3)
    y = np.array([1.0, 1.0, -1.0, -1.0, -1.0, 1.0, -1.0, -1.0])
    constraints = dc.Constraints(**({"bags": [[2], [3, 4]]} if kind == "a bag of one" else keywords_of(kind, y, rng)))
    relaxation = BUILDERS[name](X8, constraints=constraints, products=True)
    for stated in (relaxation, dc.triangles(relaxation)):
        found, linear = dc.solve(stated, solver, tol=1e-3), constraints.linear_of(8)
        F, Y = found.F, found.F @ found.F.T
        A, b = linear.at_most.coefficients, linear.at_most.right
        slack, signed = b - A @ F[:, 0], np.outer(b, F[:, 0]) - A @ Y
        assert np.all(slack[:, None] >= np.abs(signed) - 1e-8)
        E = linear.equal.coefficients @ F
        assert np.abs(E[:, 0] - linear.equal.right).max(initial=0.0) <= 1e-8
        assert np.abs(E[:, 1:]).max(initial=0.0) <= 1e-8
        assert np.diag(Y) == pytest.approx(1.0)
        if name == "penalized_nu":
            assert found.value == pytest.approx(y_objective(Y, X8 - X8.mean(axis=0), NU, RIDGE**0.5), abs=1e-12)
        is_near, is_closed = found.value <= found.lower + 1e-3, found.upper <= found.lower + 1e-3
        assert is_near or (solver == "SCS" and found.value >= found.upper - 1e-9)  # whose errors may not be repaired
        expected = dc.Status.OPTIMAL if is_closed else dc.Status.RELAXED if is_near else dc.Status.INACCURATE
        assert found.status is expected
    i, j, k = np.array([(i, j, k) for k in range(8) for j in range(k) for i in range(j)]).T
    for s, t, u in ((1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1)):
        assert np.min(s * t * Y[i, j] + s * u * Y[i, k] + t * u * Y[j, k]) >= -1.0 - 1e-8


@pytest.mark.parametrize("seed", range(5))
def test_bounds_lie_between_the_problem_without_constraints_and_the_best_labels(seed):
    check(seed)


@pytest.mark.slow
def test_bounds_of_thirty_instances_lie_between_the_problem_without_constraints_and_the_best_labels():
    found = np.array([check(seed) for seed in range(30)])
    gaps = found[:, -1:] - found[:, :-1]
    assert np.sum(gaps[:, 3] <= 1e-5) >= 20  # with products and triangles, nearly all are closed
    assert np.mean(gaps[:, 1]) < 0.8 * np.mean(gaps[:, 0])


@pytest.mark.parametrize("seed", [0, 3])
def test_lifted_has_the_value_of_penalized_nu_under_constraints(seed):
    X, constraints, _ = instance(seed)
    for products in (False, True):
        one, other = (
            dc.solve(builder(X, NU, ridge=RIDGE, constraints=constraints, products=products), "CLARABEL")
            for builder in (dc.penalized_nu, dc.lifted)
        )
        assert one.lower == pytest.approx(other.lower, abs=TOL)
        assert dc.check_certificate(X, other).lower == other.lower


def test_an_l1_penalty_is_in_the_bound_of_lifted():
    Y, values = labelings_values(X8, NU, RIDGE, 0.05, None)
    Y, values = np.vstack([Y, -Y]), np.concatenate([values, values])
    chunklets, linear = BAGS.chunklets_of(8), BAGS.linear_of(8)
    best = values[[obeys(y, chunklets, linear, [None] * 8) for y in Y]].min()
    relaxation = dc.lifted(X8, NU, lam=0.05, ridge=RIDGE, constraints=BAGS, products=True)
    for stated in (relaxation, dc.triangles(relaxation)):
        found = dc.solve(stated, "CLARABEL")
        assert found.lower <= best + 1e-9
        assert found.value - found.lower <= 1e-5
        assert dc.check_certificate(X8, found).lower == found.lower
        assert found.V.shape == (4, 4)
    assert found.lower > dc.solve(dc.lifted(X8, NU, ridge=RIDGE, constraints=BAGS), "CLARABEL").lower


@pytest.mark.parametrize("ridge", [0.0, RIDGE])
def test_the_bound_at_a_fixed_imbalance_is_below_all_labels_of_this_imbalance(ridge):
    Y, values = labelings_values(X8, 0.0, ridge, 0.0, None)
    Y, values = np.vstack([Y, -Y]), np.concatenate([values, values])
    chunklets, linear = BAGS.chunklets_of(8), BAGS.linear_of(8)
    right = [obeys(y, chunklets, linear, [None] * 8) and abs(y.mean()) == 0.5 for y in Y]
    lowers = []
    for products in (False, True):
        relaxation = dc.constrained_alpha(X8, 0.25, ridge=ridge, constraints=BAGS, products=products)
        for stated in (relaxation, dc.triangles(relaxation)):
            found = dc.solve(stated, "CLARABEL")
            assert found.lower <= values[right].min() + 1e-9
            assert found.value - found.lower <= 1e-5
            checked = dc.check_certificate(X8, found)
            assert (checked.lower, checked.upper) == (found.lower, found.upper) == (found.lower, 1.0)
            lowers.append(found.lower)
    assert lowers[0] > dc.solve(dc.constrained_alpha(X8, 0.25, ridge=ridge), "CLARABEL").lower - TOL
    assert lowers[3] >= max(lowers) - TOL


def test_a_multiplier_of_the_imbalance_in_a_certificate_is_that_of_its_bound():
    found = dc.solve(dc.constrained_alpha(X8, 0.25, constraints=BAGS), "CLARABEL").certificate
    (proof,) = found.proofs
    for weight in (proof.weight - 0.5, None):
        with pytest.raises(dc.DataError, match="refused"):
            dc.check_certificate(X8, replace(found, proofs=(proof._replace(weight=weight),)))
    with pytest.raises(dc.DataError, match="refused"):
        dc.check_certificate(X8, replace(found, proofs=(proof._replace(weight=-np.inf),)))


def test_pairs_under_a_fixed_imbalance_are_one_row_of_y():
    pairs = dc.Constraints(must_link=[(0, 1)], cannot_link=[(2, 3)])
    rows = np.zeros((2, 8))
    rows[0, [0, 1]], rows[1, [2, 3]] = (1.0, -1.0), 1.0
    found = [
        dc.solve(dc.constrained_alpha(X8, 0.25, constraints=one), "CLARABEL")
        for one in (pairs, dc.Constraints(equal=(rows, [0.0, 0.0])))
    ]
    assert found[0].lower == pytest.approx(found[1].lower, abs=1e-5)
    assert dc.check_certificate(X8, found[0]).lower == found[0].lower
    assert np.allclose(found[0].F[0], found[0].F[1])


@pytest.mark.parametrize("name", ["penalized_nu", "lifted"])
def test_known_labels_as_rows_are_known_labels(name):
    order = {"order": [[0, 1, 2]]}
    known = dc.Constraints(labels=[None, None, None, 1, -1, None, None, None], **order)
    E = np.eye(8)[[3, 4]]
    one, other = (
        dc.solve(BUILDERS[name](X8, constraints=constraints), "CLARABEL")
        for constraints in (known, dc.Constraints(equal=(E, [1.0, -1.0]), **order))
    )
    assert one.lower == pytest.approx(other.lower, abs=1e-5)
    assert one.lower > dc.solve(BUILDERS[name](X8), "CLARABEL").value + 1e-3


@pytest.mark.parametrize("name", BUILDERS)
def test_without_linear_constraints_the_problem_is_that_without_a_border(name):
    pairs = None if name == "constrained_alpha" else dc.Constraints(must_link=[(0, 1)])
    relaxation = BUILDERS[name](X8, constraints=pairs)
    (variable,) = relaxation.problem.variables()[:1]
    rows = 7 if pairs is not None else 8
    assert variable.shape[0] == rows + 3 * (name == "lifted")
    assert len(relaxation.problem.constraints) == 1 + (name == "constrained_alpha")
    same = BUILDERS[name](X8, constraints=pairs, products=True)
    assert str(same.problem) == str(relaxation.problem)
    bordered = BUILDERS[name](X8, constraints=BAGS)
    assert bordered.problem.variables()[0].shape[0] == 8 + 3 * (name == "lifted")  # 7 chunklets and y_0


def test_the_row_of_the_added_point_has_labels_that_satisfy_the_constraints():
    constraints = dc.Constraints(equal=(np.ones((1, 8)), [2.0]), bags=[[0, 1], [2, 3]])
    relaxation = dc.penalized_nu(X8, NU, ridge=RIDGE, constraints=constraints)
    dc.solve(relaxation, "CLARABEL")
    Y = relaxation.problem.variables()[0].value
    E = np.append(np.ones(8), -2.0)
    assert np.abs(E @ Y).max() < TOL
    assert np.all(Y[8, [0, 2]] + Y[8, [1, 3]] >= -TOL)
    assert np.all(np.diag(Y) == pytest.approx(1.0))


def test_triangles_are_those_of_the_cutting_planes_and_hold_at_the_solution():
    X = dc.datasets.make_planted(14, 3, noise=0.6, rng=2).X
    relaxation = dc.penalized_nu(X, ridge=0.1)
    stated = dc.triangles(relaxation)
    found, best = dc.solve(stated, "CLARABEL"), dc.optimal_labels(X, ridge=0.1, tol=1e-6)
    assert found.lower == pytest.approx(best.upper, abs=1e-5)
    assert found.status is dc.Status.OPTIMAL
    F = psd_factor(stated.problem.variables()[0].value)
    Y = F @ F.T
    i, j, k = np.array([(i, j, k) for k in range(14) for j in range(k) for i in range(j)]).T
    for s, t, u in ((1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1)):
        assert np.min(s * t * Y[i, j] + s * u * Y[i, k] + t * u * Y[j, k]) >= -1.0 - TOL
    root = dc.solve(relaxation, "CLARABEL")  # which is as before
    assert root.lower < found.lower - 1e-3
    assert root.certificate.relaxation == "directions"


def test_violated_triangles_are_added_in_rounds_to_a_larger_problem():
    X = dc.datasets.make_planted(24, 3, noise=0.6, rng=1).X
    constraints = dc.Constraints(sizes=(5, 19))
    found = dc.solve(dc.triangles(dc.penalized_nu(X, ridge=0.1, constraints=constraints)), "SCS")
    best = dc.optimal_labels(X, ridge=0.1, constraints=constraints, tol=1e-6)
    assert found.lower <= best.upper
    assert found.lower == pytest.approx(best.lower, abs=1e-4)
    assert dc.check_certificate(X, found).lower == found.lower
    once = dc.solve(dc.triangles(dc.penalized_nu(X, ridge=0.1, constraints=constraints), max_rounds=1), "SCS")
    assert once.n_iter < found.n_iter or once.lower == found.lower
    assert once.lower <= found.lower + 1e-4


def test_compare_runs_what_takes_linear_constraints_and_evaluates_their_labels():
    found = dc.compare(X8, np.sign(X8[:, 0]), ridge=RIDGE, constraints=BAGS)
    assert set(found.labels) == {f"{name}/{by}" for name in ("penalized_nu", "lifted") for by in ("SCS", "CLARABEL")}
    assert not found.disagreements
    assert any("low_rank" in note and "takes no bags, order, sizes or rows" in note for note in found.notes)
    for labels in found.labels.values():
        assert not BAGS.linear_of(8).violated(labels)


def test_a_solve_that_is_stopped_has_valid_bounds_and_a_certificate():
    relaxation = dc.penalized_nu(X8, ridge=RIDGE, constraints=BAGS)
    for result in (
        dc.solve(relaxation, "SCS", max_iter=1),
        dc.solve(relaxation, "CLARABEL", max_iter=1),
        dc.solve(relaxation, "CLARABEL", time_limit=1e-9),
    ):
        assert result.status in (dc.Status.USER_LIMIT, dc.Status.FAILED)
        checked = dc.check_certificate(X8, result)
        assert (checked.lower, checked.upper) == (result.lower, result.upper)


def test_nu_can_be_changed_under_constraints():
    relaxation = dc.penalized_nu(X8, 1.0, ridge=RIDGE, constraints=BAGS)
    for nu in (0.0, NU):
        found = dc.solve(relaxation.at(nu=nu), "CLARABEL")
        again = dc.solve(dc.penalized_nu(X8, nu, ridge=RIDGE, constraints=BAGS), "CLARABEL")
        assert found.lower == pytest.approx(again.lower, abs=TOL)
        assert found.certificate.nu == nu
    sizes = dc.Constraints(sizes=(3, 5))
    assert dc.solve(dc.penalized_nu(X8, 0.0, constraints=sizes, products=True)).lower > 0.003  # 11' is not feasible


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
def test_without_columns_that_vary_the_bound_is_nu():
    for relaxation in (dc.penalized_nu(np.ones((6, 2)), NU), dc.lifted(np.ones((6, 2)), NU)):
        found = dc.solve(dc.triangles(relaxation), "CLARABEL")
        assert found.lower == dc.check_certificate(np.ones((6, 2)), found).lower == NU


WRONG = {
    "columns": ({"at_most": (np.ones((1, 7)), [0.0])}, "at_most has 7 columns for 8 points"),
    "a point": ({"bags": [[0, 8]]}, r"bags\[0\] contains point 8"),
    "a size": ({"sizes": (9, 9)}, "sizes asks for 9 of 8 points"),
    "labels": ({"labels": [1] * 7, "bags": [[0]]}, "labels has 7 entries for 8 points"),
    "rows": ({"equal": (np.ones((2, 8)), [0.0, 2.0])}, r"no labels satisfy equal\[0\] and equal\[1\]"),
    "known labels": ({"bags": [[0, 1]], "labels": [-1, -1, 1] + [None] * 5}, r"bags\[0\] and the known labels"),
}


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("wrong", WRONG)
def test_constraints_that_do_not_fit_are_one_error(name, wrong):
    keywords, message = WRONG[wrong]
    with pytest.raises(dc.DataError, match=message):
        BUILDERS[name](X8, constraints=dc.Constraints(**keywords))


def test_what_has_no_matrix_of_labels_or_another_penalty_is_refused():
    for wrong in (dc.v_space(X8), dc.multiclass(X8, 3), X8):
        with pytest.raises(dc.ParameterError, match=r"has no matrix of labels\. Pass penalized_nu"):
            dc.triangles(wrong)
    with pytest.raises(dc.ParameterError, match="max_rounds"):
        dc.triangles(dc.penalized_nu(X8), max_rounds=0)
    groups = dc.Penalty(lam=0.1, groups=[0, 0, 1])
    with pytest.raises(dc.ParameterError, match="feature groups or known signs"):
        dc.lifted(X8, 1.0, groups, constraints=BAGS)


@pytest.mark.parametrize("solve", [dc.low_rank, dc.fista, dc.v_space, dc.v_space_normalized])
def test_solvers_of_directions_refuse_linear_constraints_in_one_sentence(solve):
    with pytest.raises(dc.ParameterError, match="which only optimal_labels, DiffracClustering, penalized_nu"):
        solve(X8, constraints=BAGS)


def test_no_multiplier_of_the_imbalance_proves_a_false_bound():
    """Any nu, also below 0 and above 1, with any mu and products, lifted until they prove something."""
    rng, proved = np.random.default_rng(0), 0
    Y, values = labelings_values(X8, 0.0, RIDGE, 0.0, None)
    Y, values = np.vstack([Y, -Y]), np.concatenate([values, values])
    chunklets, linear = BAGS.chunklets_of(8), BAGS.linear_of(8)
    right = [obeys(y, chunklets, linear, [None] * 8) for y in Y]
    for nu in (-3.0, -0.4, 1.3, 6.0):
        best = np.min((values + nu * Y.mean(axis=1) ** 2)[right])
        columns, a = np.ones(3, dtype=bool), np.full(3, RIDGE**0.5)
        problem = LabelProblem(X8, nu, a, np.zeros(3), np.ones(8), *chunklets[:2], columns, linear)
        k, m = len(linear.at_most.right), len(problem.w)
        for _ in range(20):
            rows, j = rng.integers(0, k, 9), rng.integers(0, m, 9)
            products = Products(rows, j, rng.choice(np.array([-1, 1], np.int8), 9), rng.exponential(0.05, 9))
            mu = rng.normal(0.0, 0.3, m)
            dual = LabelDual(mu, None, None, products)
            M = problem.dual_matrix(dual)[0]
            least = np.linalg.eigvalsh(M[:m, :m] - M[:m, m:] @ np.linalg.solve(M[m:, m:], M[m:, :m]))[0]
            lower = problem.lower_bound(dual._replace(mu=mu - min(least, 0.0) + 1e-12))
            proved += lower > -np.inf
            assert lower <= best + 1e-12
    assert proved >= 60
    errors = [
        LabelProblem(X8, nu, a, np.zeros(3), np.ones(8), *chunklets[:2], columns, linear).error
        for nu in (-1e6, 1.0, 1e6)
    ]
    assert min(errors[0], errors[2]) > 1e4 * errors[1]
