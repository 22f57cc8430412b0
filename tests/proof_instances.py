"""Random instances of the one proof of lower bounds, with an exact judge that shares no code with it.

The judge computes S = t (A + C + Diag(c)^2) - M in rational numbers from the user's table: exactly centred columns,
exact weights, the multiplier that the proof claims to exist, and an elimination without rounding.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import posed
from instances import centered_normal
from rationals import is_semidefinite

import diffrac_cvx as dc
from diffrac_cvx.certificates.block_problem import BlockProblem, block_problem
from diffrac_cvx.certificates.proof import Pairs, eliminate, prove
from diffrac_cvx.certificates.screening import screen_pairs
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import direction_problem, unit_problem
from diffrac_cvx.problem.penalties.group import project_spectral_ball

KINDS = ("dense", "blocks", "working set", "groups", "signs")


@dataclass(frozen=True)
class Instance:
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

    def between(self, P, T):
        """T, clipped by the proof; with signs, without a lower side."""
        return T

    def prove_at(self, t, **given):
        """Return what is left after the elimination if S is proved positive at t; None if it is not."""
        inside = None if self.kind == "blocks" or not len(self.problem.penalized) else self.between
        found = eliminate(self.problem, self.u, t, self.C, inside, **given)
        if found is None or not len(self.problem.penalized):
            return found
        found = found if self.Z is None else found.with_correction(self.Z)
        labels = np.arange(len(self.problem.penalized))
        for place, _ in self.blocks:
            labels[place] = labels[place[0]]
        pairs = None if self.kind == "groups" else screen_pairs(found, labels)
        return None if prove(found, pairs, self.blocks) else found

    def least_t(self, start=1.0, width=1e-12, proves=None):
        """Return nearly the least t at which a proof succeeds, infinity if none below 1e6 is found."""
        proves = proves or (lambda t: self.prove_at(t) is not None)
        high = start
        while not proves(high):
            high *= 1.3
            if high > 1e6:
                return np.inf
        low = high / 1.3
        while proves(low) and low > 1e-6:
            high, low = low, low / 1.3
        while high - low > width * high:
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (low, middle) if proves(middle) else (middle, high)
        return high


def table(rng, shape, hard):
    """A table of one of several kinds: hard ones have nearly collinear, constant, tiny and huge columns."""
    n, d = shape
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    if rng.random() < 0.5:
        X[:, : d // 2] += 1.5 * rng.standard_normal((n, 1))
    if hard:
        X[:, 1] = X[:, 0] + 10.0 ** -rng.integers(3, 13) * rng.standard_normal(n)
        X[:, d - 1] = X[0, 0] if rng.random() < 0.4 else X[:, d - 1]
        X *= 10.0 ** rng.choice([-8, 0, 0, 8], d)
    return X


def instance(kind, seed, hard=False, size=(6, 9)):
    """Return a random instance of a kind."""
    rng = np.random.default_rng([45, KINDS.index(kind), seed, int(hard)])
    d = int(rng.integers(4, size[1]))
    n = int(rng.integers(3, d)) if seed % 3 == 1 else int(rng.integers(d + 2, 3 * d))
    X = table(rng, (n, d), hard)
    nu = (1.0, 1.0, 0.6)[seed % 5 % 3]
    weights = rng.uniform(0.1, 3.0, n) if seed % 4 == 3 else None
    constraints = None
    if seed % 5 == 2 and n > 5:
        constraints = dc.Constraints(must_link=[(0, 1), (1, 2)], cannot_link=[(3, 4)])
    ridge, lam = ((0.3, 0.05, 1.0, 1e-3, 1e-8, 0.0)[seed % 6], (0.05, 0.2, 0.4)[seed % 3])
    if kind == "dense" and seed % 2:
        lam, ridge = 0.0, max(ridge, 1e-3)
    lam = lam * rng.uniform(0.5, 1.5, d) if seed % 7 == 5 and kind != "groups" else lam
    if kind == "blocks" and seed % 2:
        lam = lam * np.ones(d) if np.ndim(lam) == 0 else lam
        lam[rng.integers(d)] = 0.0
    groups = list(np.sort(rng.integers(0, max(2, d // 2), d))) if kind == "groups" else None
    known = [int(j) for j in np.flatnonzero(rng.random(d) < 0.6)] if kind == "signs" else None
    penalty = dc.Penalty(lam=lam, ridge=ridge, groups=groups, nonnegative=known)
    points = read_points(X, weights, constraints=constraints, by_columns=True).X
    problem = direction_problem(points, nu, penalty)
    D, pair_penalty = len(problem.c), problem.pair_penalty
    u = rng.uniform(0.5, 2.0, len(problem.X)) * 10.0 ** (rng.uniform(-2, 2, len(problem.X)) * (seed % 8 == 7))
    u = np.where(problem.zero_rows, 0.0, u)
    if kind == "dense":
        E = np.arange(D)
    elif kind == "blocks":
        E = np.flatnonzero(problem.c == 0.0)
    else:
        E = np.flatnonzero(pair_penalty.complete_groups((rng.random(D) < 0.35) | (problem.c == 0.0)))
    split = block_problem(problem, E)
    m, blocks, C, Z = len(split.penalized), [], None, None
    if problem.basis is None and kind != "blocks":
        guess = rng.standard_normal((len(E), len(E))) * (problem.c[E].mean() if len(E) else 0.0) ** 2
        C = split.project_inner(guess * rng.uniform(0.0, 1.2))
    if kind == "blocks":
        labels = rng.integers(0, max(2, m // 2), m)
        for label in np.unique(labels):
            place = np.flatnonzero(labels == label)
            if len(place) > 1:
                inside = rng.standard_normal((len(place), len(place))) * 0.3 * split.c[place].mean() ** 2
                blocks.append((place, split.pair_penalty_of(place).project_safe(inside + inside.T)))
    if kind in ("blocks", "working set", "groups") and seed % 2 and m:
        Z = rng.standard_normal((m, 2)) * 0.2 * rng.uniform(0.1, 1.0) * (rng.random(m) < 0.7)[:, None]
    return Instance(kind, X, weights, constraints, split, unit_problem(points, nu, penalty), u, C, blocks, Z)


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


# The judge


def exact_rows(it, number):
    """Return the rows of M and of A without rounding, in the units of the problem; their common factors."""
    keep = np.arange(len(it.X)) if it.weights is None else np.flatnonzero(it.weights > 0.0)
    n, one = len(keep), number(1.0)
    p = [one / number(float(n))] * n
    if it.weights is not None:
        total = sum((number(float(w)) for w in it.weights[keep]), number(0.0))
        p = [number(float(w)) / total for w in it.weights[keep]]
    columns = []
    for j in range(it.X.shape[1]):
        column = [number(float(x)) for x in it.X[keep, j]]
        mean = sum((a * b for a, b in zip(p, column, strict=True)), number(0.0))
        scale = number(float(it.unit.coordinates.scale[j]))
        if it.unit.coordinates.excluded is not None and j in it.unit.coordinates.excluded.columns:
            scale = number(0.0)
        columns.append([(x - mean) * scale for x in column])
    if it.unit.coordinates.has_offset:
        columns.append([number(float(it.unit.coordinates.scale[-1]))] * n)
    rows = [list(row) for row in zip(*columns, strict=True)]
    A = np.array([[sum((p[i] * rows[i][j] * rows[i][k] for i in range(n)), number(0.0)) for k in range(len(columns))]
                  for j in range(len(columns))], dtype=object)  # fmt: skip
    rows = [[x * p[i] * number(float(n)) for x in row] for i, row in enumerate(rows)]
    if it.constraints is not None:
        chunklets = it.constraints.chunklets_of(len(it.X))
        count = chunklets.n_chunklets
        sums = [[number(0.0)] * len(columns) for _ in range(count)]
        for i in range(n):
            for j in range(len(columns)):
                sums[chunklets.membership[i]][j] += (
                    rows[i][j] * number(float(chunklets.sign[i])) * number(float(count)) / number(float(n))
                )
        rows = sums
    return rows, A


def exact_S(it, t, found, number=Fraction):
    """Return S with the multiplier that the proof claims, and whether that is in the dual set."""
    rows, A = exact_rows(it, number)
    D, size, tt = len(A), number(float(len(rows))), number(float(t))
    a, c = ([number(float(x)) for x in values] for values in (it.unit.a, it.unit.c))
    S = np.array([[tt * A[j, k] - sum((number(float(w)) * row[j] * row[k] for w, row in zip(it.u, rows, strict=True)),
                  number(0.0)) / size for k in range(D)] for j in range(D)], dtype=object)  # fmt: skip
    for j in range(D):
        S[j, j] += tt * (a[j] * a[j] + c[j] * c[j])
    if it.problem.problem.basis is not None:
        return S, True
    E, N, pair_penalty, fine = it.problem.free, it.problem.penalized, it.unit.pair_penalty, True
    known = np.zeros(D, dtype=bool) if pair_penalty.nonnegative is None else pair_penalty.nonnegative

    def add(j, k, value):
        nonlocal fine
        S[j, k] += value
        if pair_penalty.is_box:
            fine &= value <= tt * c[j] * c[k] and (bool(known[j] and known[k]) or value >= -tt * c[j] * c[k])

    if it.C is not None:
        for i, j in enumerate(E):
            for h, k in enumerate(E):
                if j != k:
                    add(j, k, tt * number(float(it.C[i, h])))
    for i, j in enumerate(E):
        for h, k in enumerate(N):
            add(j, k, number(float(found.tC[i, h])))
            add(k, j, number(float(found.tC[i, h])))
    own = -np.arange(1, len(N) + 1)
    for b, (place, C) in enumerate(it.blocks):
        own[place] = b
        for i, j in enumerate(place):
            for h, k in enumerate(place):
                if j != k:
                    add(N[j], N[k], tt * number(float(C[i, h])))
    if not pair_penalty.is_box:
        fine &= balls_hold(it, found, E, t, number)
    left = schur(S, list(E), list(N), number)
    if left is None:
        return S, False
    Z = [[number(float(x)) for x in row] for row in found.Z]
    added = [[sum((x * y for x, y in zip(one, other, strict=True)), number(0.0)) for other in Z] for one in Z]
    for i in range(len(N)):
        for h in range(i):
            if own[i] != own[h] and pair_penalty.is_box:
                G = added[i][h] - left[i, h]
                side = tt * c[N[i]] * c[N[h]]
                value = side if G > side else G
                value = value if value >= -side or (known[N[i]] and known[N[h]]) else -side
                S[N[i], N[h]] += value
                S[N[h], N[i]] += value
    if not pair_penalty.is_box:
        own_groups = pair_penalty.restrict(N).groups
        for g, p in enumerate(own_groups):
            for q in own_groups[:g]:
                G = np.array([[float(added[i][h] - left[i, h]) for h in q] for i in p])
                side = t * float(it.unit.c[N[p[0]]]) * float(it.unit.c[N[q[0]]])
                inside = np.linalg.norm(G, 2) <= side * (1.0 - 1e-9)
                C = project_spectral_ball(G[None], np.array([side * (1 - 1e-15)]))[0]
                fine &= inside or in_ball(C, side, number)
                for i, j in enumerate(p):
                    for h, k in enumerate(q):
                        value = added[j][k] - left[j, k] if inside else number(float(C[i, h]))
                        S[N[j], N[k]] += value
                        S[N[k], N[j]] += value
    return S, bool(fine)


def balls_hold(it, found, E, t, number):
    """Whether the blocks of the multiplier on E, and between E and N, are in their spectral-norm balls."""
    pair_penalty, c = it.unit.pair_penalty, it.unit.c
    inner, outer = pair_penalty.restrict(E).groups, pair_penalty.restrict(it.problem.penalized).groups
    fine = True
    for g, p in enumerate(inner):
        for q in inner[:g]:
            fine &= in_ball(it.C[np.ix_(p, q)], float(c[E[p[0]]]) * float(c[E[q[0]]]), number)
        fine &= not it.C[np.ix_(p, p)].any()
        for q in outer:
            side = number(float(t)) * number(float(c[E[p[0]]])) * number(float(c[it.problem.penalized[q[0]]]))
            fine &= in_ball(found.tC[np.ix_(p, q)], side, number)
    return fine


def in_ball(C, side, number):
    """Whether the spectral norm of a matrix of floats is at most a number, without rounding."""
    side = number(side) if isinstance(side, float) else side
    C = np.array([[number(float(x)) for x in row] for row in C], dtype=object)
    left = -(C @ C.T) if C.size else np.zeros((0, 0), dtype=object)
    for j in range(len(left)):
        left[j, j] += side * side
    return is_semidefinite(left)


def schur(S, E, N, number):
    """Return S on N after the elimination of E; None if a pivot is not positive."""
    S, order = S[np.ix_(E + N, E + N)].copy(), len(E)
    for j in range(order):
        if S[j, j] == 0 and all(x == 0 for x in S[j]):
            continue
        if not S[j, j] > 0:
            return None
        for i in range(j + 1, len(S)):
            if S[i, j] != 0:
                S[i, j:] = S[i, j:] - S[j, j:] * (S[i, j] / S[j, j])
    return S[order:, order:]
