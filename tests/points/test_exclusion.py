"""Columns that are collinear up to rounding are excluded in one place, and every record of a bound reports this.

Labels are compared with least squares in many digits: a lower bound above their objective is invalid, unless its
record reports an excluded column.
"""

import inspect
import warnings
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse

import diffrac_cvx as dc
from diffrac_cvx.points.checks import centered_data
from diffrac_cvx.points.exclusion import exclude
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.points.table import centered_table
from diffrac_cvx.problem.direction_problem import direction_problem
from experiments.stress.exact import labels_values

N = 6
SETTINGS = {
    "no penalty": lambda d: dc.Penalty(),
    "l1 on the others": lambda d: dc.Penalty(c=[0.0, 0.0, *[3.0] * (d - 2)]),
    "groups of the others": lambda d: dc.Penalty(
        c=[0, 0, *[3.0] * ((d - 1) // 2)], groups=[0, 1, *(np.arange(2, d) // 2 + 1)]
    ),
    "a ridge on the others": lambda d: dc.Penalty(ridge=[0.0, 0.0, *[9.0] * (d - 2)]),
    "known signs of the others": lambda d: dc.Penalty(c=[0.0, 0.0, *[3.0] * (d - 2)], nonnegative=np.arange(d) >= 2),
}


def claims(X, penalty):
    """Return all public records of a lower bound for a table, by function."""
    known, y = {"nu": 1.0, "penalty": penalty}, np.where(np.arange(len(X)) % 2, 1.0, -1.0)
    result = dc.low_rank(X, **known, tol=1e-7, max_iter=100)
    found = {
        "low_rank": result,
        "low_rank, all at once": dc.low_rank(X, **known, tol=1e-7, max_iter=100, working_set=False),
        "certify_v": dc.certify_v(X, result.V, **known),
        "certify_v of the result": dc.certify_v(X, result, **known),
        "optimal_labels": dc.optimal_labels(X, **known, tol=1e-4, time_limit=0.1),
        "certify_labels": dc.certify_labels(X, y, result, **known),
    }
    if not penalty.has_l1:
        found["fista"] = dc.fista(X, **known, max_iter=100)
        found["certify_y"] = dc.certify_y(X, result.F, **known)
    if penalty.nonnegative is None:
        found["certify_clusters"] = dc.certify_clusters(X, (y > 0).astype(int), result, **known)
    return found


def false_claims(X, penalty):
    """Return the names of records without exclusions whose lower bound exceeds the objective of the labels."""
    least = min(labels_values(X[:, :2], 1.0, np.zeros(2)))  # with directions in the first two columns only
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = claims(X, penalty)
    return {name for name, one in found.items() if one.n_excluded == 0 and Decimal(float(one.lower)) > least}


WALK = 1e-15 * 1.3 ** np.arange(28)


@pytest.mark.parametrize(
    ("d", "walk"), [(4, WALK[:19:9]), *(pytest.param(d, WALK, marks=pytest.mark.slow) for d in (4, 12, 40))]
)
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_bound_is_false_on_either_side_of_the_threshold_unless_its_record_excludes_a_column(setting, d, walk):
    """The second column is the first one plus a multiple of another, in steps of a factor 1.3 over three decades."""
    rng, excluded, penalty = np.random.default_rng(0), set(), SETTINGS[setting](d)
    for scale in walk:
        x, e = rng.standard_normal((2, N))
        X = np.column_stack([x, x + scale * e, rng.standard_normal((N, d - 2))])
        assert not false_claims(X, penalty), scale
        excluded.add(direction_problem(centered_table(centered_data(X)), 1.0, penalty).coordinates.n_excluded)
    assert excluded == {0, 1} or d > N  # the values cross the threshold


def test_a_column_without_a_penalty_is_excluded_and_one_with_a_tiny_penalty_is_not():
    x = np.random.default_rng(0).standard_normal(N)
    points = centered_table(centered_data(np.column_stack([x, 3.0 * x, -x])))
    free = exclude(points, np.zeros(3, dtype=bool))
    assert (free.n_excluded, np.count_nonzero(free.used_columns())) == (2, 1)
    assert exclude(points, np.array([False, True, True])).n_excluded == 0


def test_the_value_of_a_given_matrix_is_that_of_the_whole_table_though_a_column_is_excluded():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((30, 2))
    X, G = np.column_stack([A, A @ [2.0, -3.0], 1e-7 * A[:, 0]]), rng.standard_normal((4, 3))
    q = np.sum(((X - X.mean(axis=0)) @ G) ** 2, axis=1)
    for V in (G @ G.T, scipy.sparse.csc_array(G @ G.T)):
        bounds = dc.certify_v(X, V)
        assert bounds.n_excluded == 2
        assert bounds.upper == pytest.approx(1.0 - np.mean(np.sqrt(q)) ** 2 / np.mean(q), abs=1e-9)


def test_columns_that_vary_are_kept_if_something_penalizes_them_however_far_they_are_from_zero():
    y = np.array([1, -1, 1, -1, 1, -1, 1, 1.0])
    for column in (2.0**52 + (y > 0), 1e9 + 1e-6 * (y > 0), 1e300**0.3 * (1 + np.spacing(1.0) * (y > 0))):
        for penalty in (dc.Penalty(ridge=1e-60), dc.Penalty(lam=1e-60)):
            found = dc.low_rank(column[:, None], 1.0, penalty)
            assert found.n_excluded == 0
            assert found.lower <= min(labels_values(column[:, None], 1.0, np.zeros(1))) <= found.upper


def test_columns_that_vary_as_their_rounding_are_excluded_if_nothing_penalizes_them():
    noisy = 0.3 + np.spacing(0.3) * (np.arange(40) % 3 == 0)
    X = np.column_stack([noisy, np.random.default_rng(0).standard_normal(40)])
    for form in (X, scipy.sparse.csr_array(X)):
        with pytest.warns(dc.DegenerateDataWarning, match=r"\[0\] of X is constant up to rounding"):
            found = dc.low_rank(form)
        assert found.n_excluded == 1
        assert found.upper == pytest.approx(dc.low_rank(X[:, 1:]).upper, abs=1e-9)
    X[:, 0] = 0.1  # a column that is exactly constant carries nothing, and is not counted
    with pytest.warns(dc.DegenerateDataWarning, match="constant"):
        assert dc.low_rank(X).n_excluded == 0


BOUNDS = "Result", "Bracket", "LabelCertificate", "OptimalLabels", "Certificate", "RegularizationPath", "Comparison"


def collinear(n=8):
    """Return a table of four columns, two of which are combinations of the others."""
    celsius, humidity = np.round(np.random.default_rng(0).normal([15, 60], 8, (n, 2)).T, 1)
    return np.column_stack([celsius, humidity, celsius * 1.8 + 32, celsius + humidity])


def statements(X, nu):
    """Return the numbers of excluded columns that every public statement of a bound gives, by function."""
    y, seen, loose = np.where(np.arange(len(X)) % 2, 1.0, -1.0), [], {"ridge": 0.0, "standardize": False}
    result = dc.low_rank(X, nu, callback=seen.append)
    best = dc.optimal_labels(X, nu)
    table = dc.compare(X, nu=nu, methods=["low_rank"])
    known = np.where(np.arange(len(X)) < 4, y, np.nan)
    found = {
        **{name: solver.function(X, nu, max_iter=50) for name, solver in dc.registry.SOLVERS.items()},
        "low_rank of rows": dc.low_rank(scipy.sparse.csr_array(X), nu),
        "low_rank, stopped": dc.low_rank(X, nu, time_limit=1e-9),
        "bracket": result.bracket,
        "progress": seen[0] if seen else result,
        "certify_v": dc.certify_v(X, result, nu),
        "certify_v of a matrix": dc.certify_v(X, np.eye(4), nu),
        "certify_y": dc.certify_y(X, result.F, nu),
        "certify_y at alpha": dc.certify_y(X, result.F, alpha=1.0 - nu),
        "certify_labels": dc.certify_labels(X, y, 0.0, nu=nu),
        "certify_clusters": dc.certify_clusters(X, np.arange(len(X)) % 3, 0.0, nu=nu),
        "optimal_labels": best,
        "optimal_labels, stopped": dc.optimal_labels(X, nu, time_limit=0.0),
    }
    found |= {"check_certificate": dc.check_certificate(X, best), "certificate of a result": result.certificate}
    for name, record in dc.registry.RELAXATIONS.items():
        task = dc.registry.ComparisonTask(X=X, nu=nu, alpha=1.0 - nu)
        relaxation = record.build(task)
        found |= {f"{name}, stopped": dc.solve(relaxation, max_iter=1), f"{name}, trivial": relaxation.trivial}
        found[name] = dc.solve(relaxation)
        implied = record.bounds_15(found[name].bracket, task)
        found |= {} if implied is None else {f"bounds on (15) by {name}": implied}
    counts = {name: one.n_excluded for name, one in found.items()}
    counts["compare"] = table.rows[0]["excluded"]
    counts["nu_path"] = dc.paths.nu_path(X, [nu]).n_excluded[0]
    free = dc.Penalty(lam=[1.0, 0.0, 0.0, 0.0])  # one column is then a combination of the others without a penalty
    counts["lambda_path"] = dc.paths.lambda_path(X[:, [0, 1, 1, 1]], [0.1], free, nu=nu).n_excluded[0]
    for estimator in (
        dc.DiffracClustering(nu=nu, **loose),
        dc.DiffracClustering(nu=nu, prove=True, **loose),
        dc.DiffracClustering(nu=nu, ridge=0.0),
        dc.MultiLabelDiffrac(nu=nu, **loose),
        dc.DiffracClusteringCV(nus=[nu], ridges=[0.0], lams=[0.0], n_resamples=2),
    ):
        counts[str(estimator)] = estimator.fit(X).n_excluded_
    counts["DiffracClassifier"] = dc.DiffracClassifier(nu=nu, **loose).fit(X, known).n_excluded_
    return counts


@pytest.mark.parametrize("nu", [0.0, 0.5, 1.0])
def test_every_public_statement_of_a_bound_gives_the_same_number_of_excluded_columns(nu):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts = statements(collinear(), nu)
    assert {name: count for name, count in counts.items() if count != 2} == {}
    public = {**vars(dc.paths), **{name: getattr(dc, name) for name in dir(dc)}}.items()
    returns = {name: inspect.signature(one).return_annotation for name, one in public if inspect.isfunction(one)}
    states = {name for name, kind in returns.items() if getattr(kind, "__name__", kind) in BOUNDS}
    assert states - {"solve", "low_rank_path"} <= set(counts)


def test_the_text_of_a_bound_says_how_many_columns_are_excluded():
    X, y = collinear(), np.where(np.arange(8) % 2, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dc.low_rank(X)
        found = [result, dc.certify_v(X, result), dc.certify_labels(X, y, result), dc.optimal_labels(X)]
        found.append(dc.certify_clusters(X, np.arange(8) % 3, result))
    assert all("2 columns excluded" in str(one) or "n_excluded=2" in str(one) for one in found)


@pytest.mark.parametrize("form", ["array", "streamed"])
@pytest.mark.parametrize("setting", ["no penalty", "l1 on the others"])
def test_directions_of_labels_have_no_coefficient_of_rounding_on_an_excluded_column(form, setting):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((N, 3)) * [10.0, 1.0, 1.0]
    X, y = np.column_stack([1.8 * A[:, 0] + 32.0, A]), np.where(np.arange(N) % 2, 1.0, -1.0)
    table = as_rows(X) if form == "streamed" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proof = dc.certify_labels(table, y, -1.0, penalty=SETTINGS[setting](4))
        clusters = dc.certify_clusters(table, (y > 0).astype(int), -1.0, penalty=SETTINGS[setting](4))
    assert proof.n_excluded == clusters.n_excluded == 1
    assert [np.count_nonzero(v[:2]) for v in (proof.v, *clusters.W)] == [1, 1, 1]
