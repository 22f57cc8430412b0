"""The one proof of lower bounds: against exact arithmetic, its traps, and every error term, left out."""

import inspect
import textwrap

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from posed import direction_problem
from proof_instances import KINDS, exact_S, instance, is_semidefinite

import diffrac_cvx as dc
from diffrac_cvx.certificates import proof
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import Pairs, eliminate, eliminated_matrix, prove
from diffrac_cvx.certificates.screening import screen_pairs
from diffrac_cvx.points import floating_point
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, sum_error
from diffrac_cvx.points.sparse import as_sparse_columns

NONE, BOTH = np.zeros(0, dtype=np.intp), np.arange(2)


def data(n, d, seed=0):
    return as_data(np.random.default_rng(seed).standard_normal((n, d)))


# Against exact arithmetic


@pytest.mark.parametrize("hard", [False, True], ids=["easy", "hard"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_least_t_that_is_proved_is_feasible_without_rounding(kind, hard):
    """Nearly collinear, constant, tiny and huge columns, few rows, weights, chunklets, signs, groups, corrections."""
    proved = 0
    for seed in range(6):
        it = instance(kind, seed, hard)
        t = it.least_t()
        if np.isfinite(t):
            S, in_dual_set = exact_S(it, t, it.prove_at(t))
            assert in_dual_set, seed
            assert is_semidefinite(S), seed
            proved += 1
    assert proved >= (3 if hard else 5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_t_that_is_less_by_a_little_is_not_proved_where_s_is_indefinite_then(kind):
    """The proof is nearly tight: at most instances S is indefinite a billionth below the least t that is proved."""
    tight = tried = 0
    for seed in range(4):
        it = instance(kind, seed)
        t = it.least_t()
        if np.isfinite(t) and it.Z is None:
            found, less = it.prove_at(t), t * (1.0 - 1e-9)
            tried += 1
            tight += not is_semidefinite(exact_S(it, less, found)[0])
    assert tight >= tried - 2


# Traps


def remainder_of(S, c=0.3, F=None, labels=None, **penalty):
    """An elimination of nothing, at t = 1, after which S without its multiplier is the given matrix."""
    m = len(S)
    penalty = penalty or {"c": c}
    split = block_problem(direction_problem(data(20, m), 1.0, dc.Penalty(**penalty)), NONE)
    at = eliminate(split, np.full(20, 0.5), 1.0)
    at.__dict__["diagonal"] = np.diag(S).astype(float)
    at.__dict__["F"] = np.zeros((1, m)) if F is None else F
    return at


def pairs_of(E):
    """All pairs, with boxes of size 0: the entries of S are those of E."""
    j, k = np.nonzero(np.triu(np.ones(E.shape), 1))
    return Pairs(j, k, -E[j, k], np.zeros(len(j)))


def path(m, entry, diagonal):
    """A path of coordinates: dominant if the diagonal exceeds twice the entry, positive a little before."""
    return np.diag(diagonal) + entry * (np.eye(m, k=1) + np.eye(m, k=-1))


@pytest.mark.parametrize("dense", [0, 10**4])
def test_dominance_then_weak_rows_then_a_factorization_of_all_rows_decide(monkeypatch, dense):
    """A row may be neither dominant nor strong enough to be eliminated by its dominance."""
    monkeypatch.setattr(proof, "MAX_DENSE_SIZE", dense)
    rng = np.random.default_rng(0)
    for _ in range(60):
        m = 8
        E = np.triu(rng.standard_normal((m, m)) * (rng.random((m, m)) < 0.5), 1)
        E += E.T
        diagonal = np.abs(E).sum(axis=1) * rng.uniform(0.4, 2.5, m) + 0.1
        values = np.linalg.eigvalsh(np.diag(diagonal) + E)
        assert (not prove(remainder_of(np.diag(diagonal)), pairs_of(E))) == (values[0] > 0.0)


def test_the_weighted_gram_of_whitened_coordinates_is_off_by_the_weights_alone():
    """Not by t too: at large t, the radius grows with t only by what the right side is off."""
    problem = direction_problem(data(30, 3), 1.0, dc.Penalty(ridge=0.1))
    split, u = block_problem(problem, np.arange(3)), np.full(30, 1.0)
    split.inner.__dict__["whitening_error"] = floating_point.WhiteningErrorBounds(1e-3, 0.0)
    radii = [eliminated_matrix(split, u, t, split.inner.X.weighted_gram(u), None, whitened=True)[1] for t in (1.0, 1e6)]
    mass = float(np.trace(split.inner.Z.weighted_gram(u)))
    assert radii[1] == pytest.approx(2.0 * mass**0.5 * 1e-3 + 1e-6, rel=1e-3)
    assert radii[0] == pytest.approx(radii[1], rel=1e-3)


def test_a_pair_whose_excess_is_zero_but_not_its_error_joins_its_components():
    S, F = np.diag([0.2, 0.2]), np.full((1, 2), 0.3)
    side = Pairs(BOTH[:1], BOTH[1:], np.array([0.05]), np.array([0.05 - 0.01]))  # beyond what its box is certain of
    assert prove(remainder_of(S, F=F), side.take(NONE)) == []
    assert len(prove(remainder_of(S, F=np.full((1, 2), 0.32)), side)) == 1  # together they are off by 0.2048


def test_a_multiplier_of_known_signs_may_be_large_and_its_rounding_counts():
    problem = direction_problem(data(20, 3), 1.0, dc.Penalty(lam=0.1, ridge=0.1, nonnegative=[0, 1, 2]))
    split, u, C = block_problem(problem, np.arange(3)), np.ones(20), np.zeros((3, 3))
    C[0, 1] = C[1, 0] = -1e12
    plain, large = (
        eliminated_matrix(split, u, 1.0, split.inner.X.weighted_gram(u), given, whitened=False)[1]
        for given in (None, C)
    )
    assert large - plain >= sum_error(4) * np.linalg.norm(C)
    apart = block_problem(problem, NONE)
    at, block = eliminate(apart, u, 2.0), (np.arange(3), 1e12 * np.ones((3, 3)) - 1e12 * np.eye(3))
    ((_, values, _),) = prove(at, screen_pairs(at, np.zeros(3, dtype=int)), [block])
    assert values[0] < -1e11


def test_a_multiplier_is_zero_on_columns_that_are_excluded():
    X = np.column_stack([data(20, 2), np.zeros(20)])
    problem = direction_problem(X, 1.0, dc.Penalty(c=[0.3, 0.3, 0.0], nonnegative=[0, 1, 2]))
    split = block_problem(problem, np.arange(3))
    C = split.project_inner(-np.ones((3, 3)))
    assert C[0, 1] == -1.0
    assert not C[2].any()
    assert eliminate(split, np.full(20, 0.1), 1.0, -1e-3 * np.ones((3, 3))) is not None


@pytest.mark.parametrize("size", [1, 3])
def test_what_is_left_on_the_eliminated_coordinates_is_as_large_as_what_they_are_off(size):
    """The margin is a difference: where others are left, the shift of the factorisation is twice the radius."""
    problem = direction_problem(data(30, 4), 1.0, dc.Penalty(lam=0.1, ridge=0.1))
    u, t = np.linspace(0.5, 1.5, 30), 4.0
    for E, others in ((np.arange(4), 0), (np.arange(size), 4 - size)):
        split = block_problem(problem, E)
        (P, radius), found = (
            eliminated_matrix(split, u, t, split.inner.X.weighted_gram(u), None, whitened=False),
            eliminate(split, u, t),
        )
        shift = np.diag(P - found.L @ found.L.T).mean()
        lost = radius + sum_error(2 * len(E) + 8) * np.trace(P)
        assert shift == pytest.approx((2.0 if others else 1.0) * lost, rel=1e-2)


def test_a_larger_t_need_not_be_proved_where_a_smaller_one_is_but_each_is_true():
    for seed in range(6):
        it = instance("working set", seed)
        for t in np.geomspace(0.5, 50.0, 8):
            found = it.prove_at(t)
            assert found is None or is_semidefinite(exact_S(it, t, found)[0])


def test_given_coordinates_come_first_and_whitened_ones_where_these_are_nearly_collinear():
    X = data(40, 4)
    for distance, whitened in ((1.0, False), (1e-9, True)):
        X[:, 3] = X[:, 2] + distance * X[:, 3]
        problem = direction_problem(X - X.mean(axis=0), 0.5, dc.Penalty(c=[0.3, 0.3, 0.0, 0.0]))
        found = eliminate(block_problem(problem), np.full(40, 0.01), 1.0)
        assert found.is_whitened == whitened


def test_one_tiny_weight_does_not_make_other_pairs_violated():
    """The error of a pair counts over its own weights, not over the smallest."""
    problem = direction_problem(data(60, 12), 1.0, dc.Penalty(0.3, np.append(1e-9, np.full(11, 0.3))))
    at = eliminate(block_problem(problem, NONE), np.full(60, 0.5), 1.0)
    found = screen_pairs(at, np.arange(12))
    G = np.abs(at.gram(slice(None), slice(None))) / np.outer(at.problem.c, at.problem.c)
    assert at.entry_error > 1.0  # one number for all would make all pairs violated
    expected = np.argwhere(np.triu(G > at.t, 1))
    assert [list(pair) for pair in sorted(zip(found.j, found.k, strict=True)) if pair[0]] == [
        list(pair) for pair in expected if pair[0]
    ]
    assert len(expected) < 60


def test_a_component_that_fails_returns_directions_in_which_it_is_negative():
    S = path(5, 0.6, np.ones(5))
    ((members, least, directions),) = prove(remainder_of(S), pairs_of(S - np.diag(np.diag(S))), max_directions=3)
    values = np.linalg.eigvalsh(S)
    np.testing.assert_array_equal(members, np.arange(5))
    np.testing.assert_allclose(least, values[:3], atol=1e-12)
    assert values[0] < 0.0
    for value, direction in zip(least, directions.T, strict=True):
        assert direction @ S @ direction == pytest.approx(value)


# A correction of low rank


def test_a_correction_joins_all_its_rows():
    """Each of two components is positive with its part of ZZ', together they are not."""
    Z = np.array([[1.0], [0.0], [-1.0], [0.0]])
    E = np.zeros((4, 4))
    E[0, 1] = E[1, 0] = E[2, 3] = E[3, 2] = 0.5
    at = remainder_of(np.diag([0.1, 1.0, 0.1, 1.0]))
    at.__dict__["Z"] = Z
    positive = np.linalg.eigvalsh(np.diag([0.1, 1.0, 0.1, 1.0]) + E + Z @ Z.T)[0] > 0.0
    pairs = pairs_of(E).take(np.array([0, 5]))
    assert not positive
    assert len(prove(at, pairs)) == 1
    at.__dict__["Z"] = np.diag([1.0, 0.0, 1.0, 0.0])
    assert prove(at, pairs) == []


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_strong_rows_are_eliminated_with_their_part_of_a_correction(columns):
    rng, agreed = np.random.default_rng(columns), 0
    for _ in range(80):
        E = np.triu(rng.standard_normal((9, 9)) * (rng.random((9, 9)) < 0.3), 1)
        E, Z = E + E.T, 0.7 * rng.standard_normal((9, columns))
        sums = np.abs(E).sum(axis=1)
        weak = rng.random(9) < 0.5
        diagonal = np.where(weak, rng.uniform(0.0, 1.5, 9), 3.0) * sums + 1e-3
        least = np.linalg.eigvalsh(np.diag(diagonal) + E + Z @ Z.T)[0]
        found = proof.is_sum_positive(diagonal, scipy.sparse.csr_array(E), Z, weak)
        assert least > 0.0 or not found
        agreed += found == (least > 0.0)
    assert agreed > 60


def test_the_products_of_a_correction_round_as_those_of_an_elimination():
    it = instance("working set", 3)
    at = eliminate(it.problem, it.u, it.least_t(), it.C)
    Z = np.zeros((len(at.problem.c), 2))
    Z[0] = [3.0, -4.0]
    corrected = at.with_correction(Z)
    k = len(at.K) + 2
    more = sum_error(k + 8) * (25.0 + at.K[:, 0] @ at.K[:, 0])
    assert corrected.errors[0] >= np.sum(at.F[:2, 0] ** 2) + more
    np.testing.assert_array_equal(corrected.errors[1:], at.errors[1:])
    np.testing.assert_allclose(corrected.diagonal[0], at.diagonal[0] - 25.0)
    np.testing.assert_array_equal(corrected.with_correction(Z).Z, np.hstack([Z, Z]))


# Every error term, left out


def claim_the_radius(_monkeypatch):
    """A matrix that is off by its radius, in the worst direction."""
    S = np.diag([0.1, 1.0]), 0.2
    return proof.lifted_cholesky(*S)[0] is None


def claim_the_factorization(_monkeypatch):
    """Singular matrices that rounding lets a factorisation pass."""
    for seed in range(120):
        B = np.random.default_rng(seed).standard_normal((5, 3))
        S = (B @ B.T + (B @ B.T).T) / 2
        if proof.lifted_cholesky(S, 0.0)[0] is not None:
            return False
    return True


def claim_relative_error(monkeypatch):
    """The closed form, in a coarse unit: sums and centring cover each other on any one instance."""
    monkeypatch.setattr(floating_point, "UNIT_ROUNDOFF", 2.0**-24)
    problem = block_problem(direction_problem(data(40, 2), 1.0, dc.Penalty(c=0.3)), NONE)
    u = np.append(9.0, np.ones(39))
    moved = sum_error(56) * (1.0 + 9.0 / 0.25) ** 0.5
    return proof.relative_error(problem, u, 0.25) >= sum_error(72) + 2.0 * moved + moved**2


def claim_elimination(monkeypatch, solved=1.0, coarse=None, sparse=False):
    """S on one coordinate outside is not above the exact Schur complement of a matrix that is off by its radius."""
    if coarse:
        monkeypatch.setattr(floating_point, "UNIT_ROUNDOFF", coarse)
    solve = scipy.linalg.solve_triangular
    monkeypatch.setattr(scipy.linalg, "solve_triangular", lambda *given, **how: solve(*given, **how) * solved)
    problem = direction_problem(data(30, 3), 1.0, dc.Penalty(a=0.1, c=0.05))
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


def claim_the_rounding_of_products(monkeypatch):
    """K'K is a sum of r terms, in a coarse unit."""
    monkeypatch.setattr(floating_point, "UNIT_ROUNDOFF", 2.0**-24)
    problem = direction_problem(data(30, 3), 1.0, dc.Penalty(a=0.1, c=0.05))
    split, u, t = block_problem(problem, BOTH), np.linspace(0.5, 1.5, 30), 3.0
    found = eliminate(split, u, t, whitened=False)
    h, eps, K = split.sizes(u, t), proof.relative_error(split, u, t), found.K[:, 0]
    rest = found.F[1, 0] ** 2 / (1.0 + sum_error(40)) ** 2
    return found.errors[0] >= eps * h[0] ** 2 + rest + sum_error(10) * (K @ K)


def claim_the_components(_monkeypatch):
    """Two coordinates that are off by more than is left."""
    S, pairs = np.diag([0.2, 0.2]), pairs_of(np.full((2, 2), 0.1))
    return len(prove(remainder_of(S, F=np.full((1, 2), 0.3)), pairs)) == 1


def claim_row_sums(_monkeypatch):
    """After ones each entry is less than half a unit of the sum that it is added to."""
    e = np.where(np.arange(512) % 128 < 8, 1.0, 0.98 * UNIT_ROUNDOFF)
    E, diagonal = np.zeros((513, 513)), np.append(32.0 + 256.0 * UNIT_ROUNDOFF, e * (1.0 + 4.0 * UNIT_ROUNDOFF))
    E[0, 1:] = E[1:, 0] = e
    return not proof.is_sum_positive(
        diagonal, scipy.sparse.csr_array(-E), np.zeros((513, 0)), np.zeros(513, dtype=bool)
    )


def claim_weak_rows(_monkeypatch):
    """Singular matrices that rounding lets a factorisation of weak rows pass."""
    every = np.ones(5, dtype=bool)
    for seed in range(120):
        B = np.random.default_rng(seed).standard_normal((5, 3))
        S = (B @ B.T + (B @ B.T).T) / 2
        E = scipy.sparse.csr_array(S - np.diag(np.diag(S)))
        if proof.is_sum_positive(np.diag(S), E, np.zeros((5, 0)), every):
            return False
    return True


def whitened_claim(monkeypatch, **off):
    """One whitened coordinate that is off as far as is said: the bound is attained."""
    X = data(20, 1)
    problem = direction_problem(X, 1.0, dc.Penalty(ridge=0.0))
    split, u = block_problem(problem, np.arange(1)), np.full(20, 1.0)
    split.inner.__dict__["whitening_error"] = floating_point.WhiteningErrorBounds(
        **{"data_error": 0.0, "right_error": 0.0, **off}
    )
    found = proof.least_certified_t(split, u, problem.X.weighted_gram(u), None, 1.0, 1.0)
    return found * (1.0 - off.get("right_error", 0.0)) >= (1.0 + off.get("data_error", 0.0)) ** 2 * (1.0 - 1e-12)


def claim_groups(_monkeypatch):
    """A block of two groups that is inside its ball by less than it is off."""
    at = remainder_of(np.diag(np.full(4, 0.5)), F=np.full((1, 4), 0.4), lam=0.3, groups=[0, 0, 1, 1])
    _, (rows, _, _) = proof.clip_groups(at)
    side = float(at.problem.c[0] * at.problem.c[2])
    inside = np.linalg.norm(at.gram(BOTH, BOTH + 2), 2)
    assert inside < side < inside + 0.32
    return len(rows) > 0


TERMS = {  # what is left out: of which function, which text, what instead, and the claim that fails then
    "the radius": ("lifted_cholesky", "radius + ", "", claim_the_radius),
    "the factorisation": ("lifted_cholesky", "sum_error(2 * len(S) + 8)", "0.0", claim_the_factorization),
    "sums": ("relative_error", "sum_error(k + 32)", "0.0", claim_relative_error),
    "centring": ("relative_error", "moved = sum_error(k + 16)", "moved = 0.0", claim_relative_error),
    "the weight of centring": (
        "relative_error", "1.0 + problem.problem.largest_weight(u) / t", "1.0", claim_relative_error
    ),
    "what E is off": (
        "eliminate", "margin = lift / 2.0", "margin = lift",
        lambda patch: claim_elimination(patch, coarse=2.0**-34),
    ),
    "what is between E and N": (
        "eliminate", " * sizes + cross", " * sizes", lambda patch: claim_elimination(patch, coarse=2.0**-34)
    ),
    "an inexact solution": (
        "eliminate", "np.linalg.norm(S - L @ K, axis=0)", "0.0 * sizes",
        lambda patch: claim_elimination(patch, solved=0.9),
    ),
    "entries": ("eliminate", "eps**0.5 * h,", "0.0 * h,", lambda patch: claim_elimination(patch, coarse=2.0**-34)),
    "products": ("gram_error_roots", "sum_error(len(K) + 8)", "0.0", claim_the_rounding_of_products),
    "components": (
        "prove", "left = remainder.diagonal - np.bincount(labels, errors, minlength=m)[labels]",
        "left = remainder.diagonal", claim_the_components,
    ),
    "row sums": (
        "is_sum_positive", "round_up(1.0, len(weak))", "1.0", claim_row_sums
    ),
    "weak rows": ("is_sum_positive", "round_up(sum_error(", "round_up(0.0 * sum_error(", claim_weak_rows),
    "whitened data": (
        "eliminated_matrix", "radius += (2.0 * mass**0.5 + moved) * moved", "pass",
        lambda patch: whitened_claim(patch, data_error=1e-2),
    ),
    "the right side": (
        "eliminated_matrix", "t * (right_error + ", "t * (", lambda patch: whitened_claim(patch, right_error=1e-2)
    ),
    "groups": ("clip_groups", ") + errors[g, h] <= side", ") <= side", claim_groups),
}  # fmt: skip


@pytest.mark.parametrize("term", TERMS)
def test_an_error_term_that_is_left_out_makes_a_claim_false(monkeypatch, term):
    name, text, instead, claim = TERMS[term]
    with monkeypatch.context() as patch:
        assert claim(patch)
    source = textwrap.dedent(inspect.getsource(getattr(proof, name)))
    assert text in source
    space = dict(vars(proof))
    exec(compile(source.replace(text, instead), name, "exec"), space)
    with monkeypatch.context() as patch:
        patch.setattr(proof, name, space[name])
        globals_of_test = {key: space[name] for key in [name] if key in globals()}
        for key, value in globals_of_test.items():
            patch.setitem(globals(), key, value)
        assert not claim(patch)


def test_sparse_columns_count_the_row_that_is_added_to_them():
    table = scipy.sparse.csc_array(np.r_[np.ones((19, 1)), np.zeros((1, 1))])
    plain, sparse = (
        block_problem(direction_problem(form, 1.0, dc.Penalty(c=0.1)), NONE)
        for form in (as_data(table.toarray()), as_sparse_columns(table, warn=False))
    )
    u = np.ones(20)
    more = sparse.sizes(u, 1.0) ** 2 - plain.sizes(u, 1.0) ** 2
    assert more >= 8.0 * 2.0 * sparse.X.r**2
