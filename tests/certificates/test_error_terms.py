"""Every error term of the proofs, in one list: without it a claim is false, so it is neither forgotten nor too large.

For a new term, add a row to `error_terms.csv`: its place, its text, what stands there without it, and the claim: a
function of this file, or a test that states it, by file and name.  It holds for the code and fails without the term.
"""

import ast
import csv
import importlib.util
import inspect
import pkgutil
import re
import textwrap
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from instances import centered_normal, coarsen, pairs_of, remainder_of
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates import bound_search, proof
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import eliminate, eliminated_matrix, prove
from diffrac_cvx.points import floating_point
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, sum_error

TESTS = Path(__file__).parents[1]
NONE, BOTH = np.zeros(0, dtype=np.intp), np.arange(2)


# Claims that no other test states


def claim_the_radius():
    """A matrix that is off by its radius, in the worst direction."""
    S = np.diag([0.1, 1.0]), 0.2
    return proof.lifted_cholesky(*S)[0] is None


def claim_singular_matrices():
    """Singular matrices that rounding lets a factorisation pass, of the whole or of weak rows."""
    every = np.ones(5, dtype=bool)
    for seed in range(120):
        B = np.random.default_rng(seed).standard_normal((5, 3))
        S = (B @ B.T + (B @ B.T).T) / 2
        E = scipy.sparse.csr_array(S - np.diag(np.diag(S)))
        if proof.lifted_cholesky(B @ B.T, 0.0)[0] is not None:
            return False
        if proof.is_sum_positive(np.diag(S), E, np.zeros((5, 0)), every):
            return False
    return True


def claim_relative_error(monkeypatch):
    """The closed form, in a coarse unit: sums and centring cover each other on any one instance."""
    monkeypatch.setattr(floating_point, "UNIT_ROUNDOFF", 2.0**-24)
    problem = block_problem(direction_problem(centered_normal(40, 2), 1.0, dc.Penalty(c=0.3)), NONE)
    u = np.append(9.0, np.ones(39))
    moved = sum_error(56) * (1.0 + 9.0 / 0.25) ** 0.5
    return proof.relative_error(problem, u, 0.25) >= sum_error(72) + 2.0 * moved + moved**2


@pytest.mark.parametrize(("solved", "unit"), [(1.0, 2.0**-34), (0.9, 2.0**-53)])
def claim_elimination(monkeypatch, solved, unit):
    """S on one coordinate outside is not above the exact Schur complement of a matrix that is off by its radius.

    In a coarse unit, and where systems are not solved exactly.
    """
    monkeypatch.setattr(floating_point, "UNIT_ROUNDOFF", unit)
    solve = scipy.linalg.solve_triangular
    monkeypatch.setattr(scipy.linalg, "solve_triangular", lambda *given, **how: solve(*given, **how) * solved)
    problem = direction_problem(centered_normal(30, 3), 1.0, dc.Penalty(a=0.1, c=0.05))
    split, u = block_problem(problem, BOTH), np.linspace(0.5, 1.5, 30)
    P0 = eliminated_matrix(split, u, 1.0, split.inner.X.weighted_gram(u), None, whitened=False)[0]
    D = np.linalg.eigvalsh(np.linalg.solve(problem.A + np.diag(problem.c**2), problem.X.weighted_gram(u)))[-1]
    for t in D * (1.0 + np.logspace(-3, 1, 30)) if np.isfinite(P0).all() else ():
        found = eliminate(split, u, t, whitened=False)
        if found is None:
            continue
        P, radius = eliminated_matrix(split, u, t, split.inner.X.weighted_gram(u), None, whitened=False)
        S = split.products(split.gram_weights(u, t), split.given)
        values, vectors = np.linalg.eigh(P)
        worst = P - radius * np.outer(vectors[:, 0], vectors[:, 0])
        eps, h = proof.relative_error(split, u, t), split.sizes(u, t)
        cross = eps * np.linalg.norm(split.inner_sizes(u, t, split.inner.X.weighted_gram(u))) * h[0]
        moved = S[:, 0] + np.sign(S[:, 0] @ vectors[:, 0]) * cross * vectors[:, 0]
        outside = t * split.diagonal[0] - split.weighted_squares(u)[0] - eps * h[0] ** 2
        if values[0] <= radius:
            return False
        if found.diagonal[0] - found.errors[0] > outside - moved @ np.linalg.solve(worst, moved) + 1e-13:
            return False
    return True


def claim_products_of_what_is_eliminated():
    """The closed form: what solving for K may be off covers the rounding of its products on any one instance."""
    split = block_problem(direction_problem(centered_normal(30, 3), 1.0, dc.Penalty(a=0.1, c=0.05)), BOTH)
    at = eliminate(split, np.linspace(0.5, 1.5, 30), 2.0, whitened=False)
    others = np.sum(at.F[:2] ** 2, axis=0)
    return np.all(at.errors >= others + sum_error(len(at.K) + 8) * np.sum(at.K**2, axis=0))


@pytest.mark.parametrize("whitened", [False, True])
def claim_the_sums_of_an_elimination(monkeypatch, whitened):
    """The closed form: what the entries of S between E and N may be off covers these sums on any one instance."""
    split, u, t = (
        block_problem(direction_problem(centered_normal(30, 3), 1.0, dc.Penalty(a=0.1, c=0.5)), BOTH),
        np.ones(30),
        2.0,
    )
    lifts, lifted = [], proof.lifted_cholesky
    monkeypatch.setattr(proof, "lifted_cholesky", lambda *given: lifts.append(lifted(*given)) or lifts[-1])
    at = eliminate(split, u, t, None, lambda _, T: 0.5 * T, whitened=whitened)
    eps, h, M = proof.relative_error(split, u, t), split.sizes(u, t), split.inner.X.weighted_gram(u)
    norm, data_error, width = np.linalg.norm(split.inner_sizes(u, t, M)), 0.0, 1.0
    if whitened:
        norm, width = (t * 2 + np.sum(split.F**2) / 30) ** 0.5, np.linalg.norm(split.inner.W)
        data_error = split.inner.whitening_error.data_error * (t + 1.0) ** 0.5
    rest = (eps * norm + data_error) * h + sum_error(2 + 8) * width * np.linalg.norm(at.tC, axis=0)
    rest += sum_error(2 + 4) * np.linalg.norm(at.L) * np.linalg.norm(at.K, axis=0)
    return np.all(at.F[1] * (lifts[-1][1] / 2.0) ** 0.5 >= rest)


def claim_a_large_multiplier():
    """A multiplier of known signs between two coordinates, and a diagonal that exceeds it by sixteen roundings."""
    large, C = 2.0**60, np.zeros((2, 2))
    C[0, 1] = C[1, 0] = -large
    at = remainder_of(np.diag([large * (1.0 + 16.0 * UNIT_ROUNDOFF)] * 2))
    return len(prove(at, pairs_of(np.zeros((2, 2))), [(BOTH, C)])) == 1


def claim_row_sums():
    """After ones each entry is less than half a unit of the sum that it is added to."""
    e = np.where(np.arange(512) % 128 < 8, 1.0, 0.98 * UNIT_ROUNDOFF)
    E, diagonal = np.zeros((513, 513)), np.append(32.0 + 256.0 * UNIT_ROUNDOFF, e * (1.0 + 4.0 * UNIT_ROUNDOFF))
    E[0, 1:] = E[1:, 0] = e
    return not proof.is_sum_positive(
        diagonal, scipy.sparse.csr_array(-E), np.zeros((513, 0)), np.zeros(513, dtype=bool)
    )


@pytest.mark.parametrize(("data_error", "right_error"), [(1e-2, 0.0), (0.0, 1e-2)])
def claim_whitened_coordinates(data_error, right_error):
    """One whitened coordinate that is off as far as is said: the bound is attained."""
    X = centered_normal(20, 1)
    problem = direction_problem(X, 1.0, dc.Penalty(ridge=0.0))
    problem.__dict__["whitening_error"] = floating_point.WhiteningErrorBounds(data_error, right_error)
    u = np.full(20, 1.0)
    found = bound_search.least_certified_t(problem, u, problem.X.weighted_gram(u), None, 1.0, 1.0)
    return found * (1.0 - right_error) >= (1.0 + data_error) ** 2 * (1.0 - 1e-12)


def claim_groups():
    """A block of two groups that is inside its ball by less than it is off."""
    at = remainder_of(np.diag(np.full(4, 0.5)), F=np.full((1, 4), 0.4), lam=0.3, groups=[0, 0, 1, 1])
    _, (rows, _, _) = proof.clip_groups(at)
    side = float(at.problem.c[0] * at.problem.c[2])
    inside = np.linalg.norm(at.gram(BOTH, BOTH + 2), 2)
    assert inside < side < inside + 0.32
    return len(rows) > 0


# The list


TERMS = list(csv.reader((Path(__file__).with_name("error_terms.csv")).open(newline="", encoding="utf-8")))[1:]


@cache
def claim_of(file, name):
    """Return a test of another file, that is to be called."""
    specification = importlib.util.spec_from_file_location(f"claims_of_{Path(file).stem}", TESTS / file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return getattr(module, name)


def calls(test):
    """Yield the arguments of all calls of a parametrised test."""
    marks = [mark.args for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    for chosen in product(*(values for _, values in marks)):
        options = {}
        for (names, _), values in zip(marks, chosen, strict=True):
            names = names.split(", ") if isinstance(names, str) else names
            options |= dict(zip(names, values if len(names) > 1 else [values], strict=True))
        yield options


def holds(claim):
    """Whether a claim is true."""
    test = globals()[claim] if claim.startswith("claim_") else claim_of(*claim.split("::"))
    for options in calls(test):
        with pytest.MonkeyPatch.context() as patch:
            fixtures = {"monkeypatch": patch, "coarse": partial(coarsen, patch)}
            options |= {name: fixtures[name] for name in inspect.signature(test).parameters if name not in options}
            try:
                found = test(**options)
            except AssertionError:
                found = False
        if found is not None and not found:  # tests return nothing
            return False
    return True


def plain(found):
    """Return the function of a property or a decorated function."""
    return inspect.unwrap(found.fget if isinstance(found, property) else getattr(found, "func", found))


@pytest.mark.parametrize("claim", sorted({claim for *_, claim in TERMS if claim.startswith("claim_")}))
def test_the_claims_that_no_other_test_states_hold(claim):
    assert holds(claim)


@pytest.mark.parametrize(
    ("place", "text", "instead", "claim"), TERMS, ids=[f"{place}: {text}" for place, text, *_ in TERMS]
)
def test_an_error_term_that_is_left_out_makes_a_claim_false(monkeypatch, place, text, instead, claim):
    function = plain(pkgutil.resolve_name(f"diffrac_cvx.{place}"))
    source, space = textwrap.dedent(inspect.getsource(function)), dict(function.__globals__)
    assert text in source
    assert holds(claim)
    exec(compile(source.replace(text, instead, 1), "left out", "exec"), space)
    monkeypatch.setattr(function, "__code__", plain(space[function.__name__]).__code__)
    assert not holds(claim)


# The page on rounding errors


def quoted():
    """Return the expressions that the page quotes, by the function of `proof` that they are of."""
    text = (TESTS.parent / "docs" / "guides" / "reliability.py").read_text(encoding="utf-8")
    listed = text.partition("In the code, where every number")[2].partition("t is raised by")[0]
    items = re.split(r"\n# - ", listed)[1:]
    return [(place, code) for place, *codes in (re.findall(r"``(.+?)``", item) for item in items) for code in codes]


@pytest.mark.parametrize(("place", "code"), quoted())
def test_what_the_page_quotes_is_what_the_code_computes(place, code):
    tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(proof, place))))
    assert ast.dump(ast.parse(code, mode="eval").body) in {ast.dump(node) for node in ast.walk(tree)}
