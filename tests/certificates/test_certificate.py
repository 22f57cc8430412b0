"""Certificates: what they prove is what results state, from memory and from files, and tampered ones are refused."""

import itertools
import zipfile
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse
from oracles import labelings_values

import diffrac_cvx as dc
from diffrac_cvx.certificates.certificate import Certificate, Proof, parse
from diffrac_cvx.certificates.checker import Statement, covers_all_signs
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.labels import Products, Rows, Sets, clique_rows
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.solvers.exact import portfolio
from diffrac_cvx.solvers.factored import solver

NU = 0.6
SIGNS = np.arange(12) % 2 == 0
PENALTIES = {
    "no penalty": {},
    "ridge": {"ridge": 0.3},
    "l1": {"lam": 0.05},
    "l1 and ridge": {"lam": 0.1, "ridge": 0.3},
    "l1 on some columns": {"lam": 0.05 * (np.arange(12) > 1), "ridge": 0.1},
    "groups": {"lam": 0.05, "ridge": 0.1, "groups": np.arange(12) // 3},
    "signs": {"lam": 0.05, "ridge": 0.1, "nonnegative": SIGNS},
}


def table(n=30, d=12, seed=0):
    """Return a table of two clusters in columns of different units."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, : max(1, d // 10)] += np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    return 3.0 + X


SITUATIONS = {
    "": {},
    "weights": {"sample_weight": np.arange(30) % 3},
    "constraints": {"constraints": dc.Constraints([(0, 2), (4, 6)], [(1, 2)])},
    "known labels and weights": {
        "sample_weight": 1.0 + np.arange(30) % 3,
        "constraints": dc.Constraints(labels=np.where(np.arange(30) < 4, np.arange(30) % 2, np.nan)),
    },
}


def assert_states_itself(X, result, tmp_path):
    """Check that the certificate states the bounds of its result, also from a file."""
    found = dc.check_certificate(X, result)
    result.certificate.save(tmp_path / "c.npz")
    read = dc.check_certificate(X, tmp_path / "c.npz")
    assert found.lower == read.lower == result.lower
    assert found.upper == read.upper == pytest.approx(result.upper, abs=1e-11)
    assert found.n_excluded == result.n_excluded
    assert str(found) == str(read)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("nu", [0.0, NU, 1.0])
def test_the_bounds_of_a_fast_solver_are_those_of_its_certificate(tmp_path, penalty, nu, situation):
    X, options = table(), SITUATIONS[situation]
    result = dc.low_rank(X, nu, dc.Penalty(**PENALTIES[penalty]), tol=1e-3, max_iter=200, **options)
    assert_states_itself(X, result, tmp_path)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("variant", ["accelerated", "published"])
def test_the_bounds_of_fista_are_those_of_its_certificate(tmp_path, penalty, variant):
    X = table()
    result = dc.fista(X, NU, dc.Penalty(**PENALTIES[penalty]), tol=0.02, variant=variant, max_iter=200)
    assert_states_itself(X, result, tmp_path)


@pytest.mark.parametrize("strategy", solver.STRATEGIES, ids=lambda strategy: strategy.iterates.__name__)
@pytest.mark.parametrize("d", [12, 210])
@pytest.mark.parametrize("penalty", ["l1", "l1 and ridge"])
def test_the_bounds_of_each_strategy_are_those_of_its_certificate(tmp_path, monkeypatch, strategy, d, penalty):
    X, penalty = table(40, d), dc.Penalty(**PENALTIES[penalty])
    monkeypatch.setattr(solver, "STRATEGIES", (strategy,))
    try:
        result = dc.low_rank(X, NU, penalty, tol=1e-2, max_iter=100)
    except dc.ParameterError:
        pytest.skip("the strategy does not apply")
    assert_states_itself(X, result, tmp_path)


def test_the_multipliers_of_a_working_set_prove_the_bound_on_a_wide_table(tmp_path):
    X = table(40, 260)
    result = dc.low_rank(X, 1.0, lam=0.1, ridge=0.3, rtol=0.02)
    (proof,) = result.certificate.proofs
    assert proof.free is not None
    assert len(proof.free) < 260
    assert_states_itself(X, result, tmp_path)
    assert dc.certify_v(X, result, 1.0, lam=0.1, ridge=0.3).lower >= result.lower > 0.0
    (tmp_path / "dense.npy").touch()
    np.save(tmp_path / "dense.npy", result.V)
    assert (tmp_path / "c.npz").stat().st_size < (tmp_path / "dense.npy").stat().st_size / 2


def built(name):
    """Return a relaxation of the registry with a ridge, if it takes one, as a function of X and nu."""
    record = dc.registry.RELAXATIONS[name]
    penalty = dc.Penalty(ridge=0.1 * ("ridge" in record.penalty))
    return lambda X, nu: record.build(dc.registry.ComparisonTask(X=X, nu=nu, alpha=1.0 - nu, penalty=penalty))


LINEAR = dc.Constraints(bags=[[0, 1, 2]], sizes=(3, 14), order=[[4, 5, 6]], must_link=[(0, 7)])
BUILDERS = {name: built(name) for name in dc.registry.RELAXATIONS} | {
    "v_space with l1": lambda X, nu: dc.v_space(X, nu, lam=0.05, ridge=0.1),
    "v_space with groups": lambda X, nu: dc.v_space(X, nu, dc.Penalty(lam=0.05, groups=[0, 0, 1])),
    "v_space with weights": lambda X, nu: dc.v_space(X, nu, ridge=0.1, sample_weight=np.arange(len(X)) % 3),
    "v_space_normalized with l1": lambda X, nu: dc.v_space_normalized(X, nu, lam=0.01),
    "lifted with l1": lambda X, nu: dc.lifted(X, nu, lam=0.05),
    "penalized_nu with constraints": lambda X, nu: dc.penalized_nu(X, nu, constraints=dc.Constraints([(0, 1)])),
    "constrained_alpha near balance": lambda X, _nu: dc.constrained_alpha(X, 1e-13),
    "penalized_nu with linear constraints": lambda X, nu: dc.penalized_nu(X, nu, constraints=LINEAR, products=True),
    "lifted with triangles": lambda X, nu: dc.triangles(dc.lifted(X, nu, lam=0.05, constraints=LINEAR)),
    "penalized_nu with triangles": lambda X, nu: dc.triangles(dc.penalized_nu(X, nu, ridge=0.1)),
    "constrained_alpha with linear constraints": lambda X, nu: dc.constrained_alpha(X, 1 - nu, constraints=LINEAR),
}


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("nu", [0.0, NU, 1.0])
def test_the_bounds_of_a_relaxation_solved_by_cvxpy_are_those_of_its_certificate(tmp_path, builder, nu):
    X = table(14, 3)
    assert_states_itself(X, dc.solve(BUILDERS[builder](X, nu), "CLARABEL"), tmp_path)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("penalty", ["ridge", "l1", "groups", "signs"])
def test_the_bounds_of_optimal_labels_are_those_of_their_certificate(tmp_path, penalty, situation):
    X, options = table(d=3), SITUATIONS[situation]
    chosen = {name: value[:3] if np.ndim(value) else value for name, value in PENALTIES[penalty].items()}
    found = dc.optimal_labels(X, NU, dc.Penalty(**chosen), tol=0.02, **options)
    assert_states_itself(X, found, tmp_path)
    assert np.array_equal(found.certificate.labels, found.labels)


def test_optimal_labels_of_a_table_with_more_columns_than_points_have_a_certificate(tmp_path):
    for seed in range(6):
        X = table(12, 20, seed)
        assert_states_itself(X, dc.optimal_labels(X, 0.0, ridge=0.1), tmp_path)


FORMS = {
    "sparse": scipy.sparse.csr_array,
    "single precision": lambda X: X.astype(np.float32),
    "many rows": lambda X: np.tile(X, (1500, 1)),
    "many sparse rows": lambda X: scipy.sparse.csr_array(np.tile(X, (1500, 1))),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("penalty", ["no penalty", "ridge", "l1"])
def test_the_bounds_on_a_table_in_any_form_are_those_of_the_certificate(tmp_path, form, penalty):
    X = table(d=4)
    X = FORMS[form](np.where(np.abs(X - 3.0) < 0.5, 0.0, X))
    options = {"tol": 1e-3, "max_iter": 100}
    assert_states_itself(X, dc.low_rank(X, NU, dc.Penalty(**PENALTIES[penalty]), **options), tmp_path)
    if X.shape[0] < 100:
        assert_states_itself(X, dc.fista(X, NU, dc.Penalty(**PENALTIES[penalty]), **options), tmp_path)


@pytest.mark.parametrize("unit", [1e-80, 1e80])
def test_a_certificate_holds_in_any_units(tmp_path, unit):
    X = unit * table(d=3)
    for penalty in (dc.Penalty(a=0.3 * unit), dc.Penalty(a=0.3 * unit, c=0.2 * unit)):
        assert_states_itself(X, dc.low_rank(X, NU, penalty, tol=1e-3), tmp_path)
        assert_states_itself(X, dc.optimal_labels(X, 1.0, penalty, tol=1e-2), tmp_path)


def test_an_l1_weight_whose_square_underflows_has_a_certificate(tmp_path):
    X = table(d=3)
    for lam in (1e-157, 1e-200):
        assert_states_itself(X, dc.optimal_labels(X, lam=lam, ridge=0.1, tol=1e-2), tmp_path)
        assert_states_itself(X, dc.low_rank(X, lam=lam, ridge=0.1, tol=1e-3), tmp_path)


def test_labels_and_clusters_have_the_proof_of_their_lower_bound():
    X = table(d=3)
    result = dc.low_rank(X, NU, ridge=0.1)
    y = dc.rounding.kmeans_centered(result.F)
    for found in (
        dc.certify_labels(X, y, result, nu=NU, ridge=0.1),
        dc.certify_clusters(X, np.arange(30) % 3, result, nu=NU, ridge=0.1),
    ):
        checked = dc.check_certificate(X, found)
        assert (checked.lower, checked.upper) == (found.lower, found.objective)
    assert dc.certify_labels(X, y, 0.0, nu=NU, ridge=0.1).certificate is None


def without_proofs(X, relaxation, nu, **fields):
    """Return the lower bound that a certificate without multipliers states."""
    given = Certificate(relaxation, lower=-1.0, upper=np.inf, nu=nu, penalty=dc.Penalty(), shape=X.shape, **fields)
    return Fraction(dc.check_certificate(X, given).lower)


@pytest.mark.filterwarnings("ignore::diffrac_cvx.errors.DegenerateDataWarning")
def test_without_multipliers_a_certificate_states_what_holds_without_rounding():
    X, constant = table(14, 3), np.ones((14, 3))
    for nu in np.linspace(0.0, 0.99, 40):
        assert without_proofs(X, "normalized", nu) == -1
        assert without_proofs(constant, "normalized", nu) ** 2 >= 1 - Fraction(nu)
        assert without_proofs(X, "classes", nu, n_clusters=3) <= Fraction(nu) / 3
        assert without_proofs(X, "directions", nu) == without_proofs(X, "imbalance", nu, alpha=0.9) == 0
        assert without_proofs(constant, "directions", nu) == Fraction(nu)
        assert without_proofs(constant, "imbalance", nu, alpha=0.9) <= 1 - Fraction(0.9)


def test_the_value_of_a_point_is_that_of_unit_rows_that_satisfy_the_constraints():
    X = table(14, 3)
    result = dc.solve(dc.penalized_nu(X, NU, constraints=dc.Constraints([(0, 1)])), "CLARABEL")
    found = dc.check_certificate(X, result)
    longer = replace(result.certificate, F=result.F * np.linspace(0.1, 2.0, 14)[:, None])
    assert dc.check_certificate(X, longer).upper == pytest.approx(found.upper, abs=1e-12)
    free = dc.solve(dc.penalized_nu(X, NU), "CLARABEL")
    assert free.upper < result.lower
    other = replace(result.certificate, F=free.F, upper=2.0)
    assert dc.check_certificate(X, other).upper >= result.lower


def test_bounds_that_contradict_each_other_are_refused(monkeypatch):
    X, given = searched("ridge")
    monkeypatch.setattr(Statement, "value", lambda _: given.lower / 2)
    with pytest.raises(dc.DataError, match="exceeds the objective"):
        dc.check_certificate(X, given)


def test_an_invalid_bound_has_no_proof(monkeypatch):
    monkeypatch.setattr(dc.certificates.consistency.RoundingBound, "upper_bound", lambda *_: 0.0)
    X = table(d=3)
    result = dc.low_rank(X, ridge=0.1)
    assert result.lower == dc.check_certificate(X, result).lower == 0.0
    assert result.certificate.proofs == ()


# Tampered certificates


@cache
def searched(kind):
    """Return a table and a certificate with proofs of one kind."""
    if kind == "rows":
        X = dc.datasets.make_planted(24, 4, noise=0.6, rng=0).X + 3.0
        given = dc.optimal_labels(X, ridge=0.1, lam=0.01, tol=1e-3).certificate
        assert given.proofs[0].rows is not None
    elif kind == "branches":
        X = table(14, 3)
        given = dc.optimal_labels(X, ridge=0.1, tol=1e-4).certificate
        assert len(given.proofs) > 1
    elif kind == "constrained":
        X = table(20, 3)
        linked = dc.Constraints([(0, 2), (4, 6)], [(1, 2)])
        given = dc.optimal_labels(X, ridge=0.1, tol=1e-2, constraints=linked).certificate
    elif kind == "linear":
        X = table(16, 3)
        known = [None] * 14 + [-1, 1]
        some = dc.Constraints(
            [(0, 2)], labels=known, bags=[[1, 3, 4], [5, 14]], equal=(np.eye(6, 16, 6).sum(axis=0), 0)
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(portfolio.Tree, "search", lambda tree, _=0: tree.try_labels(tree.closest(np.zeros(14))))
            given = dc.optimal_labels(X, ridge=0.1, tol=1e-3, constraints=some).certificate
        assert given.proofs[0].products is not None
        assert given.proofs[0].equal is not None
    elif kind == "partition":
        X = dc.datasets.make_planted(30, 4, noise=0.6, rng=0).X
        given = dc.optimal_partition(X, 3, ridge=0.3, tol=1e-3).certificate
        assert len(given.proofs[0].sets.centers) > 9
    elif kind == "branches of rows":
        X = table(9, 3)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(portfolio, "cut_relaxation", lambda *_: None)
            given = dc.optimal_labels(X, ridge=0.1, tol=1e-6, constraints=dc.Constraints(sizes=(2, 3))).certificate
        assert any(proof.u is None for proof in given.proofs)
    elif kind == "labels":
        X = table(14, 3)
        given = dc.solve(dc.penalized_nu(X, NU, ridge=0.1), "CLARABEL").certificate
    elif kind == "imbalance":
        X = table(14, 3)
        given = dc.solve(dc.constrained_alpha(X, 0.2), "CLARABEL").certificate
    elif kind == "passes":
        X = np.tile(table(d=3), (1500, 1))
        given = dc.low_rank(X, NU, ridge=0.1, tol=1e-2).certificate
        assert given.proofs[0].G is not None
    elif kind == "working set":
        X = table(40, 210)
        linked = dc.Constraints(labels=np.where(np.arange(40) < 6, np.arange(40) % 2, np.nan))
        given = dc.low_rank(X, NU, lam=0.1, ridge=0.3, rtol=0.1, constraints=linked).certificate
        assert given.proofs[0].Z.shape[1] > 0
    elif kind == "blocks":
        X = table(60, 12)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(solver, "STRATEGIES", (solver.BLOCKS,))
            given = dc.low_rank(X, NU, lam=0.3, tol=1e-3).certificate
        assert given.proofs[0].blocks is not None
    else:
        X = table()
        given = dc.low_rank(X, NU, dc.Penalty(**PENALTIES[kind]), tol=1e-3).certificate
    dc.check_certificate(X, given)
    return X, given


def with_proof(given, **changes):
    """Return the certificate with changes of its first proof, trivial bounds, which any proof exceeds, and no point."""
    proofs = (given.proofs[0]._replace(**changes), *given.proofs[1:])
    point = dict.fromkeys(["labels", "direction", "F", "G"])
    return replace(given, lower=-1.0, upper=2.0, proofs=proofs, **point)


def with_fields(given, **changes):
    return replace(given, **{"lower": -1.0, "upper": 2.0, **changes})


def trivial(given):
    """Return the arrays of a certificate, with trivial bounds."""
    return {**given.arrays(), "lower": -1.0, "upper": 2.0}


def with_rows(given, **changes):
    return with_proof(given, rows=given.proofs[0].rows._replace(**changes))


def with_sets(given, **changes):
    return with_proof(given, sets=given.proofs[0].sets._replace(**changes))


def with_products(given, **changes):
    return with_proof(given, products=given.proofs[0].products._replace(**changes))


def changed(array, place, value):
    copy = np.array(array)
    copy[place] = value
    return copy


# Each is refused by one guard alone: the bounds that it claims are trivial.
TAMPERED = {
    "complex weights": ("rows", lambda c: with_proof(c, diagonal=c.proofs[0].diagonal * (1.0 + 0.0j))),
    "text": ("rows", lambda c: with_proof(c, diagonal=np.array(["1.0"] * 24))),
    "objects": ("rows", lambda c: with_proof(c, diagonal=np.array([None] * 24))),
    "not a number": ("rows", lambda c: with_proof(c, diagonal=c.proofs[0].diagonal * np.nan)),
    "an infinite number": ("l1", lambda c: with_proof(c, u=changed(c.proofs[0].u, 0, np.inf))),
    "a fraction for an index": ("rows", lambda c: with_rows(c, first=c.proofs[0].rows.first + 0.5)),
    "a large integer that doubles do not have": ("rows", lambda c: with_fields(c, nu=np.uint64(2**63 + 1))),
    "a diagonal that is too short": ("rows", lambda c: with_proof(c, diagonal=c.proofs[0].diagonal[:-1], rows=None)),
    "a diagonal of one number": (
        "rows",
        lambda c: with_proof(c, diagonal=np.ones(1), rows=None, C_places=None, C_values=None),
    ),
    "a diagonal of one number for (7)": ("imbalance", lambda c: with_proof(c, diagonal=np.ones(1))),
    "a diagonal with two axes": ("rows", lambda c: with_proof(c, diagonal=c.proofs[0].diagonal[None])),
    "u that is too short": ("l1", lambda c: with_proof(c, u=c.proofs[0].u[:-1])),
    "u of one number": ("l1", lambda c: with_proof(c, u=np.ones(1))),
    "u of 0 at a row": ("l1", lambda c: with_proof(c, u=changed(c.proofs[0].u, 0, 0.0))),
    "negative u": ("l1", lambda c: with_proof(c, u=changed(c.proofs[0].u, 0, -c.proofs[0].u[0]))),
    "negative t": ("l1", lambda c: with_proof(c, t=-c.proofs[0].t)),
    "no u": ("l1", lambda c: with_proof(c, u=None)),
    "nothing that proves": ("l1", lambda c: replace(c, lower=-1.0, proofs=(Proof(t=1.0),))),
    "a negative multiplier": ("rows", lambda c: with_rows(c, multipliers=-c.proofs[0].rows.multipliers)),
    "an unknown kind of row": ("rows", lambda c: with_rows(c, kinds=c.proofs[0].rows.kinds + 1)),
    "a right side that is too small": ("rows", lambda c: with_rows(c, right=c.proofs[0].rows.right - 0.01)),
    "coefficients that are not signs": ("rows", lambda c: with_rows(c, coefficients=c.proofs[0].rows.coefficients * 2)),
    "coefficients of no signs": (
        "rows",
        lambda c: with_rows(c, coefficients=changed(np.ones(len(c.proofs[0].rows.first)), slice(None), 1.0)),
    ),
    "a chunklet twice": ("rows", lambda c: with_rows(c, second=c.proofs[0].rows.first)),
    "a chunklet that does not exist": ("rows", lambda c: with_rows(c, second=c.proofs[0].rows.second + 24)),
    "another pair in a row": (
        "rows",
        lambda c: with_rows(c, first=changed(c.proofs[0].rows.first, 2, c.proofs[0].rows.first[0])),
    ),
    "a row without entries": ("rows", lambda c: with_rows(c, ends=changed(c.proofs[0].rows.ends, 0, 0))),
    "a row that ends before it begins": (
        "rows",
        lambda c: with_rows(c, ends=changed(c.proofs[0].rows.ends, 0, c.proofs[0].rows.ends[1] + 3)),
    ),
    "a row of four entries": ("rows", lambda c: with_rows(c, ends=changed(c.proofs[0].rows.ends, 0, 4))),
    "rows of a relaxation": (
        "rows",
        lambda c: with_fields(c, relaxation="directions", labels=None, direction=None),
    ),
    "rows with groups of columns": (
        "rows",
        lambda c: with_fields(c, penalty=dc.Penalty(lam=0.01, groups=[0, 0, 1, 1])),
    ),
    "rows in a branch": ("rows", lambda c: with_proof(c, signs=np.eye(24)[0])),
    "rows without a diagonal": ("l1", lambda c: with_proof(c, rows=searched("rows")[1].proofs[0].rows)),
    "C outside its box": ("rows", lambda c: with_proof(c, C_values=c.proofs[0].C_values * 0.0 + 0.02)),
    "C on the diagonal": ("l1", lambda c: with_proof(c, C_places=c.proofs[0].C_places * 0)),
    "C below the diagonal": ("l1", lambda c: with_proof(c, C_places=c.proofs[0].C_places[:, ::-1])),
    "an entry of C twice": (
        "l1",
        lambda c: with_proof(
            c,
            C_places=np.vstack([c.proofs[0].C_places, c.proofs[0].C_places]),
            C_values=np.tile(c.proofs[0].C_values, 2),
        ),
    ),
    "a column of C that does not exist": ("l1", lambda c: with_proof(c, C_places=c.proofs[0].C_places + 5)),
    "a column of C that labels do not have": (
        "rows",
        lambda c: with_proof(c, C_places=np.array([[0, 4]]), C_values=np.zeros(1)),
    ),
    "a column of C for the offset without one": (
        "l1",
        lambda c: replace(with_proof(c, C_places=np.array([[0, 12]]), C_values=np.zeros(1)), nu=1.0),
    ),
    "C without an l1 term": (
        "ridge",
        lambda c: with_proof(c, C_places=np.array([[0, 1]]), C_values=np.array([0.01])),
    ),
    "E without C": ("ridge", lambda c: with_proof(c, free=np.arange(4))),
    "a column of E twice": (
        "working set",
        lambda c: with_proof(c, free=np.insert(c.proofs[0].free, 1, c.proofs[0].free[0])),
    ),
    "a column of E that does not exist": ("working set", lambda c: with_proof(c, free=c.proofs[0].free + 211)),
    "E with the offset without one": (
        "working set",
        lambda c: replace(with_proof(c, C_places=np.zeros((0, 2), int), C_values=np.zeros(0)), nu=1.0),
    ),
    "E beside a G": ("working set", lambda c: with_proof(c, G=np.ones((211, 1)), u=np.zeros(0))),
    "E without the offset": ("working set", lambda c: with_proof(c, free=c.proofs[0].free[:-1], Z=None)),
    "Z without E": ("l1", lambda c: with_proof(c, free=None, blocks=None, Z=np.ones((3, 1)))),
    "Z of one column for all": ("working set", lambda c: with_proof(c, Z=c.proofs[0].Z[:1])),
    "Z of other columns": ("working set", lambda c: with_proof(c, Z=c.proofs[0].Z[:-1])),
    "blocks without E": ("l1", lambda c: with_proof(c, free=None, blocks=np.zeros(12, dtype=int))),
    "blocks that are not numbered": (
        "blocks",
        lambda c: with_proof(c, blocks=np.where(c.proofs[0].blocks == 1, 0, c.proofs[0].blocks)),
    ),
    "blocks of other columns": ("blocks", lambda c: with_proof(c, blocks=c.proofs[0].blocks[:-1])),
    "blocks with a Z": ("blocks", lambda c: with_proof(c, Z=np.ones((12, 1)))),
    "blocks of groups": (
        "groups",
        lambda c: with_proof(
            c, free=np.array([12]), blocks=np.arange(12), C_places=np.zeros((0, 2), int), C_values=np.zeros(0)
        ),
    ),
    "a part of a group in E": (
        "groups",
        lambda c: with_proof(c, free=np.array([0, 1]), C_places=np.zeros((0, 2), int), C_values=np.zeros(0)),
    ),
    "a G of another height": ("passes", lambda c: with_proof(c, G=c.proofs[0].G[:-1])),
    "u beside a G": ("passes", lambda c: with_proof(c, u=np.ones(45_000))),
    "another weight of 11'": ("labels", lambda c: with_proof(c, weight=0.9)),
    "no weight of 11'": ("labels", lambda c: with_proof(c, weight=None)),
    "a weight of 11' for (21)": ("labels", lambda c: with_fields(c, relaxation="normalized", F=None, upper=np.inf)),
    "a weight of 11' and weights": ("labels", lambda c: with_fields(c, F=None, weights=np.arange(1.0, 15.0) / 105.0)),
    "a point of (8) and weights": ("labels", lambda c: with_fields(c, proofs=(), weights=np.arange(1.0, 15.0) / 105.0)),
    "weights of (7)": ("imbalance", lambda c: with_fields(c, F=None, proofs=(), weights=np.arange(1.0, 15.0) / 105.0)),
    "constraints of (7)": (
        "imbalance",
        lambda c: with_fields(c, F=None, proofs=(), membership=np.arange(14), sign=np.ones(14)),
    ),
    "u and t for K classes": ("ridge", lambda c: with_fields(c, relaxation="classes", n_clusters=3, G=None)),
    "branches of a relaxation": (
        "branches",
        lambda c: with_fields(c, relaxation="directions", labels=None, direction=None),
    ),
    "a branch left out": ("branches", lambda c: with_fields(c, proofs=c.proofs[1:])),
    "a branch with the opposite sign": (
        "branches",
        lambda c: with_proof(c, signs=c.proofs[0].signs * np.where(np.cumsum(c.proofs[0].signs != 0) > 1, -1, 1)),
    ),
    "a branch of signs that are 2": (
        "branches",
        lambda c: replace(with_proof(c), proofs=(Proof(signs=2 * np.eye(14)[0], u=np.ones(14), t=1.0),)),
    ),
    "a branch of fewer points": ("branches", lambda c: with_proof(c, signs=c.proofs[0].signs[:-1])),
    "a branch without signs among others": ("branches", lambda c: with_proof(c, signs=0 * c.proofs[0].signs)),
    "penalised columns that are excluded": ("rows", lambda c: with_fields(c, excluded=np.arange(4))),
    "an independent column that is excluded": ("no penalty", lambda c: with_fields(c, excluded=np.array([1]))),
    "weights that overflow": ("rows", lambda c: with_fields(c, weights=np.full(24, 1e308) * np.arange(1, 25) / 24)),
    "weights with another sum": ("rows", lambda c: with_fields(c, weights=np.arange(1.0, 25.0) / 299.0)),
    "weights with a sum near 1": (
        "rows",
        lambda c: with_fields(c, weights=np.arange(1.0, 25.0) / 300.0 * (1.0 + 1e-13)),
    ),
    "negative weights": ("rows", lambda c: with_fields(c, weights=-np.ones(24))),
    "a weight for one point alone": ("rows", lambda c: with_fields(c, weights=np.eye(24)[0])),
    "nu above 1": ("rows", lambda c: with_fields(c, nu=1.5)),
    "nu of a text": ("rows", lambda c: with_fields(c, nu="one")),
    "a negative ridge": ("ridge", lambda c: {**trivial(c), "a": -np.ones(12)}),
    "an infinite l1 weight": ("l1", lambda c: {**trivial(c), "c": np.full(12, 1e200)}),
    "a group with two weights": ("groups", lambda c: {**trivial(c), "c": np.arange(12.0)}),
    "a group without columns": ("groups", lambda c: {**trivial(c), "groups": np.arange(12) // 3 + 1}),
    "signs and groups": ("groups", lambda c: {**trivial(c), "nonnegative": np.ones(12)}),
    "another relaxation": ("rows", lambda c: with_fields(c, relaxation="normalized")),
    "no relaxation": ("rows", lambda c: with_fields(c, relaxation="the best one")),
    "an alpha outside": ("imbalance", lambda c: with_fields(c, alpha=1.5)),
    "an alpha of labels": ("rows", lambda c: with_fields(c, alpha=0.5)),
    "no alpha": ("imbalance", lambda c: with_fields(c, alpha=None)),
    "labels that are 0": ("rows", lambda c: with_fields(c, labels=np.zeros(24))),
    "labels of a relaxation": ("l1", lambda c: with_fields(c, labels=np.ones(30), direction=np.zeros(12))),
    "G of labels": ("rows", lambda c: with_fields(c, labels=None, direction=None, G=np.zeros((4, 1)))),
    "labels that violate the constraints": (
        "constrained",
        lambda c: with_fields(c, labels=changed(c.labels, 0, -c.labels[0])),
    ),
    "products of a row that does not exist": (
        "linear",
        lambda c: with_products(c, rows=c.proofs[0].products.rows + 100),
    ),
    "products of a chunklet that does not exist": (
        "linear",
        lambda c: with_products(c, chunklets=c.proofs[0].products.chunklets + 16),
    ),
    "products of a sign that is 0": ("linear", lambda c: with_products(c, signs=0 * c.proofs[0].products.signs)),
    "products with negative multipliers": (
        "linear",
        lambda c: with_products(c, multipliers=c.proofs[0].products.multipliers - 1e-3),
    ),
    "products of the kind of rows": ("rows", lambda c: with_rows(c, kinds=1 + c.proofs[0].rows.kinds)),
    "products without constraints": (
        "rows",
        lambda c: with_proof(c, products=Products(np.zeros(1), np.zeros(1), np.ones(1), np.ones(1))),
    ),
    "multipliers of two equations for one": (
        "linear",
        lambda c: with_proof(c, equal=np.tile(c.proofs[0].equal, (2, 1))),
    ),
    "multipliers of equations without constraints": ("rows", lambda c: with_proof(c, equal=np.zeros((1, 24)))),
    "multipliers of an equation that are too short": (
        "linear",
        lambda c: with_proof(c, equal=c.proofs[0].equal[:, :-1]),
    ),
    "labels that violate a bag": (
        "linear",
        lambda c: with_fields(c, labels=np.where(np.arange(16) < 15, -1.0, 1.0)),
    ),
    "labels that are not the known ones": ("linear", lambda c: with_fields(c, labels=-c.labels)),
    "known labels of a chunklet that does not exist": ("linear", lambda c: with_fields(c, labeled=15)),
    "a bag of a point that does not exist": (
        "linear",
        lambda c: {**trivial(c), "at_most_places": c.arrays()["at_most_places"] + [0, 16]},
    ),
    "a bag without its right side": (
        "linear",
        lambda c: {**trivial(c), "at_most_right": c.arrays()["at_most_right"][:-1]},
    ),
    "a set that has a point twice": (
        "partition",
        lambda c: with_sets(c, members=c.proofs[0].sets.members[:, [0, 0, 2, 3, 4]]),
    ),
    "a set that has its center": ("partition", lambda c: with_sets(c, centers=c.proofs[0].sets.members[:, 0])),
    "a set without a center that has K points": (
        "partition",
        lambda c: with_sets(c, centers=-1 + 0 * c.proofs[0].sets.centers),
    ),
    "a set of one point": (
        "partition",
        lambda c: with_sets(c, members=np.where(np.arange(5) < 1, c.proofs[0].sets.members, -1)),
    ),
    "a set of a point that does not exist": (
        "partition",
        lambda c: with_sets(c, members=c.proofs[0].sets.members + 25),
    ),
    "negative multipliers of sets": (
        "partition",
        lambda c: with_sets(c, multipliers=c.proofs[0].sets.multipliers - 1e-3),
    ),
    "negative floors": ("partition", lambda c: with_proof(c, floors=c.proofs[0].floors - 1e-3)),
    "floors of fewer points": ("partition", lambda c: with_proof(c, floors=c.proofs[0].floors[:-1, :-1])),
    "floors of labels": ("rows", lambda c: with_proof(c, floors=np.zeros((24, 24)))),
    "sets of labels": (
        "rows",
        lambda c: with_proof(c, sets=Sets(np.zeros(1), np.array([[1, 2]]), np.ones(1))),
    ),
    "triangles of signs for three clusters": (
        "partition",
        lambda c: with_proof(c, rows=clique_rows(np.array([[0, 1, 2]]), np.ones((1, 3), np.int8), np.ones(1))),
    ),
    "products of three clusters": (
        "partition",
        lambda c: with_proof(c, products=Products(np.zeros(1), np.zeros(1), np.ones(1), np.ones(1))),
    ),
    "an l1 term of three clusters": ("partition", lambda c: {**trivial(c), "c": np.ones(4)}),
    "a branch that the rows do not exclude": (
        "branches of rows",
        lambda c: with_proof(c, **(Proof()._asdict() | {"signs": np.sign(c.proofs[0].signs)})),
    ),
    "a branch without multipliers or rows": (
        "branches",
        lambda c: with_proof(c, **(Proof()._asdict() | {"signs": c.proofs[0].signs})),
    ),
    "rows and known signs": (
        "linear",
        lambda c: {**trivial(replace(c, proofs=())), "nonnegative": np.ones(3)},
    ),
    "known signs of K clusters": ("signs", lambda c: with_fields(c, relaxation="clusters", n_clusters=3, G=None)),
    "constraints of K clusters": (
        "constrained",
        lambda c: with_fields(c, relaxation="clusters", n_clusters=3, labels=None, direction=None, proofs=()),
    ),
    "a ridge of (7) that its point does not pay": (
        "imbalance",
        lambda c: replace(c, lower=0.0, penalty=dc.Penalty(ridge=1.0)),
    ),
    "signs that are 2": ("rows", lambda c: with_fields(c, membership=np.arange(24), sign=np.full(24, 2.0))),
    "a chunklet without points": ("rows", lambda c: with_fields(c, membership=2 * np.arange(24), sign=np.ones(24))),
    "a chunklet without points among others": (
        "rows",
        lambda c: with_fields(
            c, membership=changed(np.arange(24), 1, 0), sign=np.ones(24), labels=None, direction=None
        ),
    ),
    "constraints of half": ("rows", lambda c: with_fields(c, sign=np.ones(24))),
    "a direction that is too short": ("rows", lambda c: with_fields(c, direction=c.direction[:-1])),
    "a point with another number of directions": ("ridge", lambda c: with_fields(c, G=c.G[:-1])),
    "a place of G that it does not have": (
        "blocks",
        lambda c: {**trivial(c), "G_places": c.arrays()["G_places"] + 100},
    ),
    "a lower bound above the upper one": ("rows", lambda c: replace(c, lower=c.upper, upper=c.lower)),
    "a larger lower bound": ("l1", lambda c: replace(c, lower=c.lower + 1e-8)),
    "a smaller upper bound": ("l1", lambda c: replace(c, upper=c.upper - 1e-8)),
    "a lower bound without a proof": ("l1", lambda c: replace(c, proofs=())),
    "another version": ("l1", lambda c: {**trivial(c), "format": 1}),
    "a field that nobody reads": ("l1", lambda c: {**trivial(c), "comment": 1}),
    "a field that is missing": ("l1", lambda c: {k: v for k, v in trivial(c).items() if k != "nu"}),
    "proofs that are not numbered": ("l1", lambda c: {k.replace("0.", "1."): v for k, v in trivial(c).items()}),
    "another shape": ("l1", lambda c: with_fields(c, shape=(30, 13))),
    "proofs of another type": ("l1", lambda c: with_fields(c, proofs=(1, 2))),
    "a penalty of another type": ("l1", lambda c: with_fields(c, penalty=0.1)),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_certificate_that_was_tampered_with_is_refused(tmp_path, what):
    kind, tamper = TAMPERED[what]
    X, given = searched(kind)
    tampered = tamper(given)
    if isinstance(tampered, dict):
        np.savez(tmp_path / "c.npz", **tampered)
        tampered = tmp_path / "c.npz"
    with pytest.raises(dc.DataError, match=r"refused|not a certificate"):
        dc.check_certificate(X, tampered)


@pytest.mark.parametrize("kind", ["l1", "ridge", "blocks", "working set", "groups", "signs", "branches"])
def test_a_smaller_t_proves_no_larger_bound(kind):
    X, given = searched(kind)
    found = dc.check_certificate(X, with_proof(given, t=0.8 * given.proofs[0].t))
    assert found.lower <= given.lower


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("a part of a group in E", "part of a group"),
        ("E beside a G", "E is not that of a table in memory"),
        ("u of one number", "u has 1 entries"),
        ("a branch without signs among others", "none that is not 0"),
        ("a row without entries", "not from 1"),
        ("a chunklet that does not exist", "not from 0 to 23"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_computed(what, reason):
    kind, tamper = TAMPERED[what]
    X, given = searched(kind)
    with pytest.raises(dc.DataError, match=reason):
        dc.check_certificate(X, tamper(given))


def test_no_certificate_has_bounds_that_cross_or_a_proof_without_its_number():
    arrays = searched("l1")[1].arrays()
    with pytest.raises(dc.DataError, match="lower exceeds upper"):
        parse({**arrays, "lower": 0.5, "upper": 0.4})
    with pytest.raises(dc.DataError, match="not numbered"):
        parse({name.replace("0.", "1."): value for name, value in arrays.items()})


def test_a_certificate_is_refused_for_another_table():
    X, given = searched("rows")
    moved = changed(X, (3, 2), X[3, 2] + 0.5)
    for other in (moved, X[:-1], X[:, :-1], X[::-1]):
        with pytest.raises(dc.DataError, match="refused"):
            dc.check_certificate(other, given)


def test_only_certificates_are_checked():
    X = table()
    for other in (3, None, dc.datasets.load, X):
        with pytest.raises(dc.DataError, match="certificate"):
            dc.check_certificate(X, other)


def test_two_branches_cover_all_signs_only_together():
    whole, plus, minus = np.array([1.0, 0, 0]), np.array([1.0, 0, 1]), np.array([-1.0, 0, 1])
    assert covers_all_signs([whole])
    assert covers_all_signs([None, plus])
    assert covers_all_signs([plus, whole, minus])
    assert covers_all_signs([plus, minus])
    assert not covers_all_signs([plus])
    assert not covers_all_signs([plus, -plus])
    assert not covers_all_signs([plus, np.array([0.0, 1, 1])])
    assert not covers_all_signs([plus, np.array([-1.0, 1, 1])])
    for signs in itertools.permutations([plus, np.array([-1.0, 1, 1]), np.array([1.0, 1, -1])]):
        assert covers_all_signs(list(signs))


def random_change(arrays, rng):
    """Return arrays with a random change of one of them: its values, type, shape or order, or that it is there."""
    name, made = rng.choice(sorted(arrays)), dict(arrays)
    value = np.asarray(arrays[name])
    if value.dtype.kind not in "biuf":
        made[name] = rng.choice(["labels", "directions", "normalized", "clusters", "x"])
        return made
    places = rng.random(value.shape) < rng.choice([0.05, 0.5, 1.0])
    sizes = [0.0, -1.0, 1.0, 2.0, 0.5, 1.0 + 1e-9, 1e-300, 1e308, np.inf, np.nan]
    changes = [
        lambda: np.where(places, value * rng.choice(sizes), value),
        lambda: np.where(places, value + rng.choice([-1, 1, 1e-3, -1e-3, 1e-9]), value),
        lambda: np.where(places, rng.choice(sizes), value),
        lambda: value.astype(rng.choice(["f4", "i1", "u1", "c16", "bool", "i8", "O", "U8"])),
        lambda: rng.permutation(value) if value.ndim else value,
        lambda: value[::-1] if value.ndim else value[None],
        lambda: value[: len(value) // 2] if value.ndim else np.zeros(0),
        lambda: np.concatenate([value, value]) if value.ndim else np.full(2, value),
        lambda: value.T[..., None],
        lambda: arrays[rng.choice(sorted(arrays))],
    ]
    with np.errstate(all="ignore"):
        made[name] = changes[rng.integers(len(changes))]()
    if rng.random() < 0.05:
        del made[name]
    return made


def check_random_changes(tmp_path, kind, seeds):
    """Check certificates with random changes against bounds that are known to be true."""
    X, given = searched(kind)
    arrays, confirmed = {**given.arrays(), "lower": -1.0, "upper": 2.0}, 0
    for seed in seeds:
        rng = np.random.default_rng([seed, len(arrays)])
        changed_arrays = random_change(arrays, rng)
        if rng.random() < 0.3:
            changed_arrays = random_change(changed_arrays, rng)
        try:
            found = dc.check_certificate(X, parse(changed_arrays))
        except (dc.DataError, dc.ParameterError):
            continue
        confirmed += 1
        stated, before = ({k: v for k, v in one.arrays().items() if k in STATEMENT} for one in (found, given))
        if stated.keys() == before.keys() and all(np.array_equal(stated[k], before[k]) for k in stated):
            assert found.lower <= given.upper
            assert found.upper >= given.lower
        assert found.lower <= found.upper
    return confirmed


STATEMENT = (
    "relaxation", "nu", "alpha", "n_clusters", "a", "c", "groups", "nonnegative", "weights", "membership", "sign",
    "labeled", "at_most_places", "at_most_values", "at_most_right", "equal_places", "equal_values", "equal_right",
)  # fmt: skip
KINDS = [
    "rows",
    "branches",
    "linear",
    "branches of rows",
    "labels",
    "imbalance",
    "working set",
    "blocks",
    "l1",
    "groups",
    "signs",
    "no penalty",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_random_changes_confirm_no_false_bound_and_raise_no_other_error(tmp_path, kind):
    check_random_changes(tmp_path, kind, range(40))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_changes_confirm_no_false_bound_and_raise_no_other_error(tmp_path, kind):
    assert check_random_changes(tmp_path, kind, range(40, 540)) > 0


def test_false_branches_with_the_bound_of_all_labels_are_not_confirmed():
    X, given = searched("branches")
    best = labelings_values(X - X.mean(axis=0), ridge=0.1)[1].min()
    assert dc.check_certificate(X, given).lower <= best
    alone = replace(given, lower=-1.0, proofs=given.proofs[:1])  # its bound holds in this branch only
    with pytest.raises(dc.DataError, match="cover"):
        dc.check_certificate(X, alone)


def test_a_proof_whose_sums_overflow_does_not_stand_for_the_branches_that_are_missing():
    X = np.random.default_rng(0).standard_normal((9, 2))
    labels = np.where(np.arange(9) % 3 == 2, -1.0, 1.0)
    linked = [(0, int(i)) for i in np.flatnonzero(labels > 0.0)[1:]], [(0, int(i)) for i in np.flatnonzero(labels < 0)]
    branch = dc.low_rank(X, 1.0, dc.Penalty(ridge=0.3), constraints=dc.Constraints(*linked), tol=1e-6).certificate
    rows = dc.Constraints(equal=(np.eye(1, 9) - np.eye(1, 9, 1), [0.0]))
    given = dc.optimal_labels(X, ridge=0.3, constraints=rows, tol=1e-3).certificate
    assert branch.lower > given.upper + 0.1
    mu, multipliers = np.full(10, 1e300), np.zeros((1, 10))
    mu[2:4], multipliers[0, :4] = 2e307, [8e307, -8e307, 2e307, 2e307]  # whose absolute sum is infinite
    proofs = branch.proofs[0]._replace(signs=np.append(labels, 1.0)), Proof(diagonal=mu, equal=multipliers)
    false = replace(given, lower=0.0, upper=1.0, labels=None, direction=None, proofs=proofs)
    assert dc.check_certificate(X, false).lower == 0.0


# Damaged files


def damaged(content, rng):
    """Return a file with some bytes changed, cut off or repeated."""
    content, place = bytearray(content), int(rng.integers(len(content)))
    kind = rng.integers(4)
    if kind == 0:
        return bytes(content[:place])
    if kind == 1:
        return bytes(content[place:] + content[:place])
    for at in rng.integers(0, len(content), 1 if kind == 2 else 30):
        content[at] = int(rng.integers(256))
    return bytes(content)


def test_a_damaged_file_is_one_error_that_names_the_file(tmp_path):
    X, given = searched("branches")
    given.save(tmp_path / "whole.npz")
    content, rng = (tmp_path / "whole.npz").read_bytes(), np.random.default_rng(0)
    for _ in range(200):
        changed_content = damaged(content, rng)
        (tmp_path / "c.npz").write_bytes(changed_content)
        if changed_content != content:
            with pytest.raises(dc.DataError, match="is not a certificate"):
                dc.check_certificate(X, tmp_path / "c.npz")
    for path in (tmp_path / "nothing.npz", __file__, tmp_path):
        with pytest.raises(dc.DataError, match="not a certificate"):
            dc.check_certificate(X, path)


def test_a_file_that_unpacks_to_much_more_than_its_size_is_refused_before(tmp_path):
    with zipfile.ZipFile(tmp_path / "c.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("lower.npy", bytes(200_000_000))
    assert (tmp_path / "c.npz").stat().st_size < 1_000_000
    with pytest.raises(dc.DataError, match="unpacks to 200 MB"):
        Certificate.load(tmp_path / "c.npz")


def test_an_array_that_states_another_size_is_refused(tmp_path):
    X, given = searched("branches")
    given.save(tmp_path / "c.npz")
    with zipfile.ZipFile(tmp_path / "c.npz") as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["labels.npy"] = members["labels.npy"].replace(b"(14,)", b"(99,)")
    for content in (members["labels.npy"], members["labels.npy"][:-8], b"x" * 100):
        with zipfile.ZipFile(tmp_path / "c.npz", "w") as file:
            for name, member in {**members, "labels.npy": content}.items():
                file.writestr(name, member)
        with pytest.raises(dc.DataError, match="not a certificate"):
            dc.check_certificate(X, tmp_path / "c.npz")


def test_rows_have_one_field_for_each_part_of_an_inequality():
    assert {field.name for field in fields(Certificate)} >= {"relaxation", "nu", "penalty", "weights", "proofs"}
    assert Rows._fields == ("kinds", "ends", "first", "second", "coefficients", "right", "multipliers")


def test_the_value_of_a_sparse_v_does_not_depend_on_the_order_in_which_its_entries_are_stored():
    """Its rows are large and cancel, so that another order of the sums is another rounding."""
    X = np.random.default_rng(0).standard_normal((6, 4))
    X[:, 1] = X[:, 0] + 1e-12 * X[:, 1]
    table = read_points(X).X
    G = np.array([[1e11, 3e11, -2e11], [-1e11, -3e11, 2e11], [0.1, 0.2, 0.0], [0.0, 0.3, 0.1]])
    stored = scipy.sparse.csc_array(G)
    stored.indices, stored.data = (np.concatenate([p[::-1] for p in np.split(x, stored.indptr[1:-1])])
                                   for x in (stored.indices, stored.data))  # fmt: skip
    stored.has_sorted_indices = False
    judge = RoundingBound(table, 1.0, dc.Penalty())
    found, value = judge.or_trivial(stored)
    assert value == judge.or_trivial(stored.sorted_indices())[1] == judge.or_trivial(found)[1]
    assert found.has_sorted_indices


def test_without_a_column_that_varies_beyond_rounding_a_result_has_the_bound_that_the_checker_states():
    """Two collinear columns that differ in their last bit are both excluded."""
    x = 1.0 + np.array([0.0, 1.0, 1.0]) * np.spacing(1.0)
    X = np.column_stack([x, 2.0 * x])
    with pytest.warns(dc.DegenerateDataWarning):
        result = dc.low_rank(X)
    assert result.n_excluded == 2
    assert dc.check_certificate(X, result).lower == result.lower == 1.0
