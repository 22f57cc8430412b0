"""Tables, problems of every kind by their seed, and small tools that several tests use."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import posed
from oracles import allowed, pair_penalty_parts, pair_penalty_value, solve_pair_penalty
from penalties import PenaltyOfPairs, draw_sides

import diffrac_cvx as dc
from diffrac_cvx.certificates.block_problem import BlockProblem, block_problem
from diffrac_cvx.certificates.direction_bounds import Blocks
from diffrac_cvx.certificates.proof import Pairs, eliminate, prove
from diffrac_cvx.certificates.screening import screen_pairs
from diffrac_cvx.points import floating_point
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import direction_problem, unit_problem
from diffrac_cvx.solvers.factored.components import BlockPoint

DATA = ("gaussian", "gaussian", "wide", "units", "constant", "duplicate", "binary", "planted")
GROUPINGS = ("unequal", "unequal", "singles", "pairs", "all", "none")
NO_COLUMNS = np.zeros(0, dtype=np.intp)
SPARSE_KINDS = ("equal", "unequal", "free", "ridge", "zeros", "correlated", "binary", "all")
PROOF_KINDS = ("dense", "blocks", "working set", "groups", "signs", "pairs")
COARSE = 2.0**-30  # a unit of rounding with which each error term is large


def normal(n=20, d=4, seed=0):
    """Independent normal entries, not centred."""
    return np.random.default_rng(seed).standard_normal((n, d))


def centered_normal(n=20, d=4, seed=0):
    """Centred normal data."""
    return as_data(normal(n, d, seed))


def planted(n=60, d=30, noise=0.3, seed=0, **options):
    """Two clusters along a direction of few columns."""
    return dc.datasets.make_planted(n, d, noise=noise, rng=seed, **options).X


def with_noise_columns(columns, d, seed):
    """Centred columns and noise, mixed by an invertible matrix: relaxations without an l1 term are invariant."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack([columns, rng.standard_normal((len(columns), d - columns.shape[1]))])
    return (columns - columns.mean(axis=0)) @ rng.standard_normal((d, d))


def result_of(**fields):
    """A result of three points, some fields of which are given."""
    given = {"value": 0.5, "lower": 0.2, "upper": 0.5, "factor": np.eye(3, 2), "status": dc.Status.OPTIMAL, "n_iter": 3}
    return dc.Result(**{**given, "seconds": 0.1, "solver": "a solver", **fields})


def coarsen(patch, *modules):
    """Let floating-point numbers have a coarse unit, in which the errors of the bounds are computed."""
    for module in (floating_point, *modules):
        patch.setattr(module, "UNIT_ROUNDOFF", COARSE)


def signs(model):
    """Labels -1 and 1 of an estimator of two clusters."""
    return 2.0 * model.labels_ - 1.0


def assert_overlap(one, other, slack=1e-12):
    """Check that two brackets may hold one optimum."""
    assert one.lower <= other.upper + slack, f"{one} is above {other}"
    assert other.lower <= one.upper + slack, f"{one} is below {other}"


def satisfies(Y, constraints):
    """Return whether labels satisfy the constraints, or which labellings, rows of Y, do."""
    if constraints is None:
        return np.ones(len(Y), dtype=bool)
    Y = np.atleast_2d(Y)
    chunklets = constraints.chunklets_of(Y.shape[1])
    signs = chunklets.sign * Y
    first = signs[:, [np.argmax(chunklets.membership == g) for g in range(chunklets.n_chunklets)]]
    known = (chunklets.labeled < 0) | (first[:, chunklets.labeled] == 1.0)
    return known & np.all((np.abs(Y) == 1.0) & (signs == first[:, chunklets.membership]), axis=1)


# Columns in groups and known signs, in any units; the judge is in `oracles`


class Instance(NamedTuple):
    """Data, weights as the oracle takes them, and what is known of signs and of labels."""

    X: np.ndarray
    nu: float
    ridge: np.ndarray  # (d,)
    groups: list  # lists of columns
    weights: np.ndarray  # a weight for each group, of the squared norm
    named: bool  # whether groups are said to the package: those of one may be an l1 norm
    known: np.ndarray  # columns that are nonnegative
    w: np.ndarray | None
    membership: np.ndarray | None  # linked points have the same number
    sign: np.ndarray | None  # of a point in its group
    sides: np.ndarray | float = 1.0  # (d, d), weights of pairs of single columns

    @property
    def penalty(self):
        if np.ndim(self.sides):
            return PenaltyOfPairs(self.sides, lam=self.weights, ridge=self.ridge)
        groups = self.groups if self.named else None
        known = self.known if len(self.known) else None
        return dc.Penalty(lam=self.weights, ridge=self.ridge, groups=groups, nonnegative=known)

    @property
    def constraints(self):
        if self.membership is None:
            return None
        first = [int(np.flatnonzero(self.membership == g)[0]) for g in self.membership]
        pairs = [(i, j, self.sign[i] * self.sign[j]) for i, j in enumerate(first) if i != j]
        return dc.Constraints([(i, j) for i, j, s in pairs if s > 0], [(i, j) for i, j, s in pairs if s < 0])

    @property
    def given(self):
        """Shares of the points, constraints and weights of pairs, for the oracle."""
        point_weights = None if self.w is None else self.w / self.w.sum()
        return {"point_weights": point_weights, "membership": self.membership, "sign": self.sign, "sides": self.sides}

    @property
    def posed(self):
        """What the oracle takes."""
        return self.X, self.nu, self.ridge, self.groups, self.weights

    def value(self, V):
        """The objective at V."""
        return pair_penalty_value(V, *self.posed, **self.given)

    def best_value(self, V):
        """The objective at the best multiple of V."""
        g, T = pair_penalty_parts(V, *self.posed, **self.given)
        return 1.0 - g**2 / T if T > 0.0 else 1.0

    def solve(self):
        """Optimal value by CVXPY, with the bounds of the judge."""
        return solve_pair_penalty(*self.posed, self.known, **self.given)


def draw_instance(seed):
    """An instance by its seed."""
    rng = np.random.default_rng([2026, 26, seed])
    kind, grouping = rng.choice(DATA), rng.choice(GROUPINGS)
    n, d = int(rng.integers(5, 11)), int(rng.integers(2, 6))
    if kind == "wide":
        n, d = int(rng.integers(3, 6)), int(rng.integers(5, 8))
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    if kind == "planted":
        X[:, 0] = np.where(np.arange(n) % 2, 1.0, -1.0)
        X = X @ rng.standard_normal((d, d))
    if kind == "binary":
        X = np.where(rng.random((n, d)) < 0.5, 1.0, 0.0)
    if kind == "constant":
        X[:, rng.integers(d)] = 3.0
    if kind == "duplicate":
        X[:, -1] = X[:, 0] * rng.choice([1.0, -1.0])
    groups = draw_groups(rng, d, grouping)
    lam = rng.choice([0.01, 0.1, 0.5]) * np.ones(len(groups)) if rng.integers(2) else rng.uniform(0.0, 0.5, len(groups))
    lam[rng.random(len(groups)) < 0.15] = 0.0
    ridge = rng.choice([0.0, 0.01, 0.3]) * np.ones(d) if rng.integers(2) else rng.choice([0.0, 0.05, 0.3], d)
    ridge = ridge + (0.05 if kind == "wide" else 0.0)
    if kind == "units":
        for i, g in enumerate(groups):
            unit = 10.0 ** rng.uniform(-6, 6)
            X[:, g] *= unit
            lam[i] *= unit**2
            ridge[g] *= unit**2
    known = np.flatnonzero(rng.random(d) < rng.choice([0.0, 0.0, 0.5, 1.0]))
    known = known if grouping == "none" else known[:0]  # a penalty has groups or signs
    nu = float(rng.choice([1.0, 1.0, 0.6, 0.1, 0.0]))
    w = rng.uniform(0.1, 3.0, n) if rng.integers(3) == 0 else None
    membership = sign = None
    if rng.integers(4) == 0:
        membership, sign = rng.integers(0, max(2, 2 * n // 3), n), rng.choice([-1.0, 1.0], n)
    return Instance(X, nu, ridge, groups, lam, grouping != "none", known, w, membership, sign)


def draw_wide_instance(seed):
    """An instance with twice as many columns as points, and a ridge: two clusters along the first group, or none."""
    rng = np.random.default_rng([2026, 27, seed])
    n, d = int(rng.integers(8, 13)), int(rng.integers(18, 25))
    X, groups = rng.standard_normal((n, d)), draw_groups(rng, d, ("unequal", "pairs")[seed % 2])
    if seed % 3:
        X[:, groups[0]] += 3.0 * np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    lam = rng.choice([0.2, 0.5]) * rng.uniform(0.5, 1.5, len(groups))
    ridge = rng.choice([0.3, 1.0]) * np.ones(d)
    if seed % 4 == 3:
        unit = 10.0 ** rng.uniform(-4, 4, len(groups))
        for group, one in zip(groups, unit, strict=True):
            X[:, group] *= one
            ridge[group] *= one**2
        lam = lam * unit**2
    nu, w = (1.0, 0.6)[seed % 5 == 2], rng.uniform(0.1, 3.0, n) if seed % 5 == 4 else None
    return Instance(X, nu, ridge, groups, lam, True, NO_COLUMNS, w, None, None)


def draw_wide_columns(seed, most_columns=40):
    """A small wide table without groups: equal, negated or constant columns, any units, heavy tails, weights."""
    rng = np.random.default_rng([2017, 31, seed])
    n, d = int(rng.integers(8, 21)), int(rng.integers(20, most_columns + 1))
    X = rng.standard_t(2, (n, d)) if seed % 4 == 1 else rng.standard_normal((n, d))
    if seed % 3 == 0:
        X = X + 1.5 * rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    if seed % 3 == 1:
        X[:, : d // 5] += 1.2 * rng.choice([-1.0, 1.0], n)[:, None]
    copies = rng.integers(0, d, d // 4)
    if seed % 2:
        X[:, rng.permutation(d)[: len(copies)]] = X[:, copies] * rng.choice([-1.0, 1.0], len(copies))
    X /= np.std(X, axis=0)
    ridge = rng.choice([0.02, 0.3, 1.0]) * (np.ones(d) if seed % 5 < 2 else rng.choice([0.0, 0.25, 1.0, 4.0], d))
    lam = rng.choice([0.005, 0.05, 0.2, 0.4]) * (np.ones(d) if seed % 5 < 3 else rng.uniform(0.3, 2.0, d))
    if seed % 7 == 0:
        lam[rng.integers(0, d, 2)] = 0.0
    if seed % 6 == 0:
        units = 10.0 ** rng.uniform(-6, 6, d)
        X, ridge, lam = X * units, ridge * units**2, lam * units**2
    if seed % 8 == 3:
        X[:, rng.integers(0, d, 3)] = 2.0
    nu, w = (1.0, 0.7, 0.4)[int(rng.integers(3))], rng.choice([0.25, 1.0, 2.0], n) if seed % 5 == 4 else None
    return Instance(X, nu, ridge, draw_groups(rng, d, "none"), lam, False, NO_COLUMNS, w, None, None)


def link(instance, seed):
    """The same instance with points in groups, in which they have the same or the opposite label."""
    rng, n = np.random.default_rng([2017, 25, seed]), len(instance.X)
    return instance._replace(membership=rng.integers(0, max(2, 2 * n // 3), n), sign=rng.choice([-1.0, 1.0], n))


def weigh_pairs(instance, seed):
    """The same instance without groups and signs, with a weight of each pair of columns."""
    rng, d = np.random.default_rng([2017, 32, seed]), instance.X.shape[1]
    lam = np.array(
        [next(w for g, w in zip(instance.groups, instance.weights, strict=True) if j in g) for j in range(d)]
    )
    ridge = np.maximum(instance.ridge, 0.05 * (np.ptp(instance.X, axis=0) == 0.0))  # the judge sees their rounding
    made = instance._replace(groups=draw_groups(rng, d, "none"), named=False, known=NO_COLUMNS)
    return made._replace(weights=lam, ridge=ridge, sides=draw_sides(rng, d))


def draw_groups(rng, d, grouping):
    """Lists of columns, not in order."""
    columns = rng.permutation(d)
    if grouping == "all":
        return [np.arange(d)]
    if grouping in ("singles", "none"):
        return [np.array([j]) for j in range(d)]
    ends = np.arange(2, d, 2) if grouping == "pairs" else np.sort(rng.choice(np.arange(1, d), rng.integers(1, d)))
    return [np.sort(part) for part in np.split(columns, np.unique(ends))]


def some_matrix(instance, rng):
    """A positive semidefinite V of any rank, in the units of the columns, at its best multiple; with allowed signs."""
    X, d = instance.X, instance.X.shape[1]
    size = np.sqrt(np.var(X, axis=0) + instance.ridge)
    units = 1.0 / np.where(size > 1e-9 * np.abs(X).max(axis=0), size, 1.0)
    units = units if instance.nu == 1.0 else np.append(units, 1.0)
    U = rng.standard_normal((len(units), int(rng.integers(1, d + 1))))
    return allowed(U @ U.T * 0.1, instance.known) * np.outer(units, units)


# Sparse problems: weights that differ or are 0, a ridge, columns of zeros or of two values


class SparseInstance(NamedTuple):
    """Data, the weight of the imbalance, and an l1 penalty."""

    X: np.ndarray
    nu: float
    penalty: dc.Penalty

    @property
    def split(self):
        """Problem (15) with the unpenalised coordinates apart."""
        return block_problem(posed.direction_problem(as_data(self.X, warn=False), self.nu, self.penalty))


@cache
def sparse_instance(seed):
    """One of 24 kinds of problems, n in 8, ..., 40 and d in 4, ..., 12."""
    rng = np.random.default_rng([2017, 10, seed])
    kind, nu = SPARSE_KINDS[seed % 8], (1.0, 0.5, 0.05)[seed // 8 % 3]
    n, d = int(rng.integers(8, 41)), int(rng.integers(4, 13))
    X = rng.standard_normal((n, d))
    if kind in ("correlated", "all"):
        X = X @ (np.eye(d) + 0.4 * rng.standard_normal((d, d)))
    if kind in ("binary", "all"):
        X[:, ::2] = np.sign(X[:, ::2])
    if kind in ("zeros", "all"):
        X[:, rng.integers(1, d)] = 0.0
    c = rng.uniform(0.05, 0.7) * (rng.uniform(0.5, 1.5, d) if kind in ("unequal", "all") else np.ones(d))
    if kind in ("free", "all"):
        c[rng.integers(d, size=2)] = 0.0
    return SparseInstance(X, nu, dc.Penalty(a=0.2 * (kind in ("ridge", "all")) * rng.uniform(0.0, 2.0, d), c=c))


@cache
def optimum(seed):
    """An accurate solution that does not use components."""
    return dc.low_rank(*sparse_instance(seed), working_set=False, tol=1e-8, max_iter=1500)


def random_blocks(rng, split):
    """Groups of a random number of coordinates."""
    m = len(split.c)
    return Blocks(split, np.unique(rng.integers(int(rng.integers(1, m + 1)), size=m), return_inverse=True)[1])


def random_point(rng, blocks):
    """A block diagonal V at random."""
    f, m1 = blocks.problem.F.shape[1], len(blocks.singles)
    factors = [rng.standard_normal((len(block) + f, int(rng.integers(1, 5)))) for block in blocks.members]
    return BlockPoint(rng.standard_normal(m1), rng.standard_normal((m1, f)), rng.standard_normal((f, f)), factors)


def random_multipliers(rng, blocks):
    """Symmetric matrices inside the boxes of the blocks."""
    matrices = [rng.uniform(-1.0, 1.0, (len(block), len(block))) for block in blocks.members]
    boxes = [penalty.half_width for penalty in blocks.penalties]
    return [box * (C + C.T) / 2 for box, C in zip(boxes, matrices, strict=True)]


# Proofs of lower bounds; the judge is in `rationals`


@dataclass(frozen=True)
class ProofInstance:
    """A problem with weights u, the coordinates E, C on E, blocks of the others with C, and a correction Z."""

    kind: str
    X: np.ndarray
    weights: np.ndarray | None
    constraints: object
    problem: BlockProblem
    unit: object
    u: np.ndarray
    C: np.ndarray | None
    blocks: list
    Z: np.ndarray | None

    def prove_at(self, t, **given):
        """Return what is left after the elimination if S is proved positive at t; None if it is not."""
        has_between = self.kind != "blocks" and len(self.problem.penalized) > 0
        between = (lambda P, T: T) if has_between else None  # clipped by the proof
        found = eliminate(self.problem, self.u, t, self.C, between, **given)
        if found is None or not len(self.problem.penalized):
            return found
        found = found if self.Z is None else found.with_correction(self.Z)
        labels = np.arange(len(self.problem.penalized))
        for place, _ in self.blocks:
            labels[place] = labels[place[0]]
        pairs = None if self.kind == "groups" else screen_pairs(found, labels)
        return None if prove(found, pairs, self.blocks) else found

    def least_t(self, width=1e-12):
        """Return nearly the least t at which a proof succeeds, infinity if none below 1e6 is found."""
        tries = 1.3 ** np.arange(-52, 53)
        high = next((t for t in tries[52:] if self.prove_at(t) is not None), np.inf)
        low = high / 1.3 if high < np.inf else high
        while high == low * 1.3 > 1e-6 and self.prove_at(low) is not None:
            high, low = low, low / 1.3
        while high - low > width * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.prove_at(middle) is not None else (middle, high)
        return high


def proof_instance(kind, seed, hard=False, wide=False):
    """Return a random instance of a kind.

    Hard ones have nearly collinear, constant, tiny and huge columns; wide ones few points, and nearly the best u and C.
    """
    rng = np.random.default_rng([45, PROOF_KINDS.index(kind), seed, int(hard)])
    d = int(rng.integers(4, 9)) + 6 * wide
    n = int(rng.integers(3, d)) if seed % 3 == 1 else int(rng.integers(d + 2, 3 * d))
    n = 4 if wide else n
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    if wide:
        X += rng.choice([0.5, 1.0]) * rng.standard_normal((n, 2)) @ rng.standard_normal((2, d))
        X[:, d - 2 :] = X[:, :2] + 1e-6 * rng.standard_normal((n, 2)) if seed % 3 == 1 else X[:, d - 2 :]
    elif rng.random() < 0.5:
        X[:, : d // 2] += 1.5 * rng.standard_normal((n, 1))
    if hard:
        X[:, 1] = X[:, 0] + 10.0 ** -rng.integers(3, 13) * rng.standard_normal(n)
        X[:, d - 1] = X[0, 0] if rng.random() < 0.4 else X[:, d - 1]
        X *= 10.0 ** rng.choice([-8, 0, 0, 8], d)
    nu = (1.0, 1.0, 0.6)[seed % 5 % 3]
    weights = rng.uniform(0.1, 3.0, n) if seed % 4 == 3 else None
    constraints = None
    if seed % 5 == 2 and n > 5:
        constraints = dc.Constraints(must_link=[(0, 1), (1, 2)], cannot_link=[(3, 4)])
    ridge, lam = ((0.3, 0.05, 1.0, 1e-3, 1e-8, 0.0)[seed % 6], (0.05, 0.2, 0.4)[seed % 3])
    ridge, lam = ((0.2, 0.05), (0.3, 0.1))[seed // 2 % 2] if wide else (ridge, lam)
    if kind == "dense" and seed % 2:
        lam, ridge = 0.0, max(ridge, 1e-3)
    lam = lam * rng.uniform(0.5, 1.5, d) if seed % 7 == 5 and kind != "groups" else lam
    if kind == "blocks" and seed % 2:
        lam = lam * np.ones(d)
        lam[rng.integers(d)] = 0.0
    groups = np.sort(rng.integers(0, max(2, d // 2), d)) if kind == "groups" else None
    groups = np.arange(d) // 2 if kind == "groups" and wide else groups
    known = [int(j) for j in np.flatnonzero(rng.random(d) < 0.6)] if kind == "signs" else None
    penalty = dc.Penalty(lam=lam, ridge=ridge, groups=groups, nonnegative=known)
    penalty = PenaltyOfPairs(draw_sides(rng, d), lam=lam, ridge=ridge) if kind == "pairs" else penalty
    points = read_points(X, weights, constraints=constraints, by_columns=True).X
    problem = direction_problem(points, nu, penalty)
    D, pair_penalty = len(problem.c), problem.pair_penalty
    u = rng.uniform(0.5, 2.0, len(problem.X)) * 10.0 ** (rng.uniform(-2, 2, len(problem.X)) * (seed % 8 == 7))
    if wide:
        u = 1.0 / np.sqrt(np.maximum(problem.X.quadratic_forms(rng.standard_normal((D, 2))), 0.1))
    u = np.where(problem.zero_rows, 0.0, u)
    in_E = {"dense": np.ones(D, dtype=bool), "blocks": np.zeros(D, dtype=bool)}.get(kind)
    in_E = rng.random(D) < (0.1 if wide else 0.35) if in_E is None else in_E
    split = block_problem(problem, np.flatnonzero(pair_penalty.complete_groups(in_E | (problem.c == 0.0))))
    (e, m), blocks, C, Z = (len(split.free), len(split.penalized)), [], None, None
    if problem.basis is None and kind != "blocks":
        guess = rng.standard_normal((e, e)) * (split.inner.c.mean() if e else 0.0) ** 2 * rng.uniform(0.0, 1.2)
        C = split.project_inner(split.inner.X.weighted_gram(u) - split.inner.summed_A if wide else guess)
    if kind == "blocks" or (kind == "pairs" and not wide):
        labels = rng.integers(0, max(2, m // 2), m)
        for place in (np.flatnonzero(labels == label) for label in np.unique(labels)):
            if len(place) > 1:
                inside = rng.standard_normal((len(place), len(place))) * 0.3 * split.c[place].mean() ** 2
                blocks.append(
                    (place, split.problem.pair_penalty.restrict(split.penalized[place]).project_safe(inside + inside.T))
                )
    if kind in ("blocks", "working set", "groups", "pairs") and seed % 2 and m and not wide:
        Z = rng.standard_normal((m, 2)) * 0.2 * rng.uniform(0.1, 1.0) * (rng.random(m) < 0.7)[:, None]
    return ProofInstance(kind, X, weights, constraints, split, unit_problem(points, nu, penalty), u, C, blocks, Z)


# Matrices after an elimination


def remainder_of(S, c=0.3, F=None, **penalty):
    """An elimination of nothing, at t = 1, after which S without its multiplier is the given matrix."""
    m, penalty = len(S), dc.Penalty(**penalty or {"c": c})
    split = block_problem(posed.direction_problem(centered_normal(20, m), 1.0, penalty), np.zeros(0, dtype=np.intp))
    at = eliminate(split, np.full(20, 0.5), 1.0)
    at.__dict__["diagonal"] = np.diag(S).astype(float)
    at.__dict__["F"] = np.zeros((1, m)) if F is None else F
    return at


def pairs_of(E):
    """All pairs, with boxes of size 0: the entries of S are those of E."""
    j, k = np.nonzero(np.triu(np.ones(E.shape), 1))
    return Pairs(j, k, -E[j, k], np.zeros(len(j)))
