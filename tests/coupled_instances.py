"""Small problems with columns in groups and known signs, in any units, and what an independent judge says of them."""

from typing import NamedTuple

import numpy as np
from oracles import allowed, pair_penalty_parts, pair_penalty_value, solve_pair_penalty

import diffrac_cvx as dc

DATA = ("gaussian", "gaussian", "wide", "units", "constant", "duplicate", "binary", "planted")
GROUPINGS = ("unequal", "unequal", "singles", "pairs", "all", "none")
NO_COLUMNS = np.zeros(0, dtype=np.intp)


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

    @property
    def penalty(self):
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
        """Shares of the points and constraints, for the oracle."""
        point_weights = None if self.w is None else self.w / self.w.sum()
        return {"point_weights": point_weights, "membership": self.membership, "sign": self.sign}

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
        """Optimal value by CVXPY, and the value of an allowed V."""
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
