"""Small adversarial instances by family: very different sizes, ties, collinear columns, every kind of weight.

Some are wide, with a ridge on every column between negligible and dominant compared with the data, or have sample
weights, or are given as a sparse matrix or streamed rows; some have feature groups or known signs.  Some are close to
the limit for constant columns: columns that nearly copy others and are not penalised, or that vary little around a
large offset.  Some tables change while they are read.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

import diffrac_cvx as dc
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.typing import Array

Rng = np.random.Generator
MOST_POINTS, MOST_FEATURES = 12, 5
MANY_COLUMNS = 200  # number of columns from which on a working set is used
MOST_LABELED = 7  # most points if all labellings are tried
MAX_WITHOUT_L1, MAX_WITH_L1 = 8, 5  # the same in newer families, without and with an l1 penalty or known signs
PERTURBATION_POWERS = (-16, -12)  # powers of ten: difference of columns from copies of others


class Instance(NamedTuple):
    """Data, nu, the weights a and c per column, sample weights, and the format of the data.

    Columns may form groups with one c each, and may be known to be nonnegative.  A solver may exclude only directions
    in which the data differ from `without`.  A table that changes consists of many copies of the rows.
    """

    X: Array
    nu: float
    a: Array
    c: Array
    w: Array | None = None
    form: str = "array"
    groups: npt.NDArray[np.intp] | None = None
    nonnegative: npt.NDArray[np.bool_] | None = None
    without: Array | None = None  # the data without the directions that may be excluded
    after: Array | None = None  # the data after they have been read a few times

    @property
    def penalty(self) -> dc.Penalty:
        """Penalty as passed to the functions."""
        if self.groups is None:
            return dc.Penalty(self.a, self.c, nonnegative=self.nonnegative)
        first = np.sort(np.unique(self.groups, return_index=True)[1])
        return dc.Penalty(self.a, self.c[first], groups=self.groups, nonnegative=self.nonnegative)

    @property
    def has_l1(self) -> bool:
        """Whether the penalty is more than a ridge."""
        return bool(self.c.any()) or self.nonnegative is not None

    @property
    def has_many_columns(self) -> bool:
        """Whether solvers use a working set, given an l1 penalty."""
        return int(self.X.shape[1]) >= MANY_COLUMNS

    @property
    def given(self) -> npt.ArrayLike:
        """Data as passed to the functions."""
        if self.form == "sparse":
            return scipy.sparse.csr_array(self.X)  # type: ignore[return-value]
        if self.form == "streamed":
            return as_rows(self.X, warn=False)  # type: ignore[return-value]
        return self.X


def nearly_collinear(rng: Rng, n: int, d: int) -> Array:
    """The last column equals another one up to a relative difference of 2^-k."""
    X = rng.standard_normal((n, d))
    if d > 1:
        X[:, -1] = X[:, 0] + X[:, -1] * 2.0 ** -float(rng.integers(1, 56))
    return X


def ill_conditioned(rng: Rng, n: int, d: int) -> Array:
    """Singular values that decrease from 1 to as little as 1e-14."""
    left, _, right = np.linalg.svd(rng.standard_normal((n, d)), full_matrices=False)
    return np.asarray((left * np.geomspace(1.0, 10.0 ** -rng.uniform(0, 14), left.shape[1])) @ right)


def one_outlier(rng: Rng, n: int, d: int) -> Array:
    """One row a million times as large."""
    X = rng.standard_normal((n, d))
    X[rng.integers(n)] *= 1e6
    return X


def planted(rng: Rng, n: int, d: int) -> Array:
    """Noiseless labels in the first column: the optimum is 0 if they are balanced."""
    X = rng.standard_normal((n, d))
    X[:, 0] = np.where(np.arange(n) % 2, 1.0, -1.0)
    return np.asarray(X @ rng.standard_normal((d, d)))


FAMILIES: dict[str, Callable[[Rng, int, int], Array]] = {  # numbered by their sorted names
    "small_integers": lambda rng, n, d: rng.integers(-1, 2, (n, d)).astype(float),  # ties, equal rows, rows of zeros
    "wild_entries": lambda rng, n, d: rng.choice([0.0, 1.0, -1.0, 1e-9, -1e-9, 1e9], (n, d)),
    "gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    "bad_units": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-8, 8, d),
    "far_from_zero": lambda rng, n, d: rng.standard_normal((n, d)) + 10.0 ** rng.uniform(0, 12, d),
    "nearly_collinear": nearly_collinear,
    "ill_conditioned": ill_conditioned,
    "duplicates": lambda rng, n, d: rng.standard_normal((n, d))[rng.integers(0, max(n // 2, 1), n)][
        :, rng.integers(0, d, d)
    ],  # equal rows and equal columns
    "two_valued": lambda rng, n, d: np.where(rng.random((n, d)) < rng.uniform(0.2, 0.8), 1.0, 0.0),
    "one_outlier": one_outlier,
    "planted": planted,
}


def wide(rng: Rng) -> Instance:
    """More columns than rows in any units, with a ridge on all, from 1e-20 to 1e16 of a column."""
    n = int(rng.integers(2, MOST_LABELED + 1))
    d = n + int(rng.integers(1, 9))
    X = rng.standard_normal((n, d)) * 10.0 ** (rng.uniform(-8, 8, d) * rng.integers(2))
    X += (10.0 ** rng.uniform(0, 8, d) if rng.integers(2) else 0.0) * np.abs(X).max(axis=0)
    ratio = 10.0 ** (rng.uniform(-20, 16, d) if rng.integers(2) else np.full(d, rng.uniform(-20, 16)))
    a = np.clip(ratio * np.ptp(X, axis=0), 1e-90, 1e90)
    c = np.where(rng.random(d) < 0.8, 10.0 ** rng.uniform(-3, 0), 0.0) * np.ptp(X, axis=0) * rng.integers(2)
    return Instance(X, draw_nu(rng), a, np.asarray(c), draw_weights(rng, n))


def large_columns(rng: Rng) -> Instance:
    """A few columns larger than the others by up to 1e18, such as time stamps, and one ridge for all."""
    n = int(rng.integers(3, MOST_LABELED + 1))
    d = n + int(rng.integers(-1, 9))
    X = rng.standard_normal((n, d))
    X[:, : int(rng.integers(1, 4))] *= 10.0 ** rng.uniform(9, 18)
    return Instance(X, draw_nu(rng), np.full(d, 10.0 ** rng.uniform(-2, 1)), np.zeros(d), draw_weights(rng, n))


def many_columns(rng: Rng, make: Callable[[Rng, int, int], Array]) -> Instance:
    """Many columns in any units with an l1 penalty and a ridge: solved with a working set."""
    n, d = int(rng.integers(8, 21)), int(rng.integers(MANY_COLUMNS, MANY_COLUMNS + 40))
    X = make(rng, n, d)
    size = np.std(X, axis=0)
    size = np.where(size > 1e-9, size, 1.0)
    units = 10.0 ** rng.uniform(-4, 4, d) if rng.integers(4) == 0 else np.ones(d)
    X, size = X * units, size * units
    ridge = rng.choice([0.0, 0.3, 1.0], d) if rng.integers(2) else np.full(d, rng.choice([0.03, 0.3, 3.0]))
    lam = 10.0 ** rng.uniform(-3, 0) * (rng.uniform(0.5, 1.5, d) if rng.integers(3) == 0 else np.ones(d))
    if rng.integers(5) == 0:
        lam[rng.integers(0, d, 2)] = 0.0
    return Instance(X, draw_nu(rng), np.sqrt(ridge) * size, np.sqrt(lam) * size, draw_weights(rng, len(X)))


def factors(rng: Rng, n: int, d: int) -> Array:
    """Columns correlated by a few common factors, some of which separate two clusters."""
    k = int(rng.integers(1, 6))
    X = rng.standard_normal((n, d)) + rng.uniform(0, 2) * rng.standard_normal((n, k)) @ rng.standard_normal((k, d))
    X[:, : int(rng.integers(1, 30))] += rng.uniform(0, 2) * rng.choice([-1.0, 1.0], n)[:, None]
    return X


def blocks(rng: Rng, n: int, d: int) -> Array:
    """Repetitions of a block of columns, up to signs, with little noise or none."""
    k = int(rng.integers(2, 30))
    X = np.tile(rng.standard_normal((n, k)), d // k + 1)[:, :d] * rng.choice([-1.0, 1.0], d)
    return np.asarray(X + rng.choice([0.0, 1e-9, 1e-3, 0.1]) * rng.standard_normal((n, d)))


def signs(rng: Rng, n: int, d: int) -> Array:
    """Columns with few values, many of them equal up to sign, some constant."""
    X = np.asarray(rng.integers(-1, 2, (n, d)), dtype=float)
    X = X[:, rng.integers(0, int(rng.integers(2, d)), d)] * rng.choice([-1.0, 1.0], d)
    X[:, rng.random(d) < 0.1] = 3.0
    return np.asarray(X)


def tails(rng: Rng, n: int, d: int) -> Array:
    """Heavy tails: rows and entries far larger than the others."""
    return rng.standard_t(rng.uniform(0.7, 3.0), (n, d))


def many_groups(rng: Rng) -> Instance:
    """Many columns in groups, some of a single column, correlated by a few common factors."""
    made = many_columns(rng, factors)
    d, size = made.X.shape[1], int(rng.integers(2, 6))
    labels = rng.permutation(np.where(rng.random(d) < 0.1, np.arange(d), np.arange(d) // size))
    largest = np.zeros(d)
    np.maximum.at(largest, labels, made.c)
    return made._replace(c=largest[labels], groups=np.unique(labels, return_inverse=True)[1])


def three_points(rng: Rng) -> Instance:
    """Three points: only one Y is balanced, and nearly balanced ones are better by the root of their imbalance."""
    X = rng.standard_normal((3, int(rng.integers(1, 3)))) * 10.0 ** rng.uniform(-3, 3)
    return Instance(X, draw_nu(rng), rng.choice([0.0, 0.3], X.shape[1]), np.zeros(X.shape[1]))


def sparse_table(rng: Rng) -> Instance:
    """A sparse matrix with some columns far from 0 and some with few entries."""
    n, d = int(rng.integers(3, MOST_POINTS + 1)), int(rng.integers(1, 12))
    X = np.where(rng.random((n, d)) < rng.uniform(0.1, 0.9, d), rng.standard_normal((n, d)), 0.0)
    X = (X + np.where(rng.random(d) < 0.2, 10.0 ** rng.uniform(0, 6, d), 0.0)) * 10.0 ** rng.uniform(-4, 4, d)
    nu = draw_nu(rng)
    a, c = draw_penalty(rng, X)
    return Instance(X, nu, a, c, form="sparse")


def grouped(rng: Rng) -> Instance:
    """The families of arrays with feature groups of unequal sizes, some without a weight."""
    made = of_family(rng)
    sizes, labels = np.abs(made.X).max(axis=0), rng.integers(0, int(rng.integers(1, 4)), made.X.shape[1])
    largest = np.array([sizes[labels == g].max(initial=0.0) for g in range(3)])
    weights = rng.choice(SIZES, 3) if rng.integers(2) else np.full(3, rng.choice(SIZES))
    c = np.clip(weights * np.where(largest > 0.0, largest, 1.0), 0.0, 1e90)
    return made._replace(c=c[labels], groups=np.asarray(labels))


def signed(rng: Rng, made: Instance) -> Instance:
    """Return an instance with known signs of some columns."""
    return made._replace(nonnegative=rng.random(made.X.shape[1]) < rng.choice([0.3, 0.6, 1.0]))


def of_any(rng: Rng) -> Instance:
    """Return an instance of the families of arrays."""
    return make_instance(str(rng.choice(sorted(FAMILIES))), int(rng.integers(10**6)))


def of_family(rng: Rng) -> Instance:
    """Return an instance of the families of arrays, some with sample weights, sparse, or streamed."""
    made = of_any(rng)
    w = 10.0 ** rng.uniform(-3, 2, len(made.X)) if rng.integers(4) == 0 else None
    return made._replace(
        w=w, form="array" if w is not None else str(rng.choice(["array", "array", "sparse", "streamed"]))
    )


def draw_nu(rng: Rng) -> float:
    """Return a weight of the imbalance, which is 1 in half of the cases."""
    return float(rng.choice(NUS)) if rng.integers(2) else 1.0


def draw_weights(rng: Rng, n: int) -> Array | None:
    """Return sample weights, or None in half of the cases."""
    return np.asarray(10.0 ** rng.uniform(-3, 2, n)) if rng.integers(2) else None


def weighted(rng: Rng) -> Instance:
    """The families of arrays with sample weights."""
    made = of_any(rng)
    return made._replace(w=10.0 ** rng.uniform(-6, 3, len(made.X)))


def beside_collinear(rng: Rng, kind: str) -> Instance:
    """Unpenalised columns and near copies of them, together with columns penalised in one or several ways."""
    n = int(rng.integers(4, (MAX_WITHOUT_L1 if kind == "ridge" else MAX_WITH_L1) + 1))
    m, k = int(2 ** rng.uniform(0, 5)), 1 + int(rng.integers(4) == 0)
    free, others, noise = rng.standard_normal((n, k)), rng.standard_normal((n, m)), rng.standard_normal((n, k))
    copies = free + 10.0 ** rng.uniform(*PERTURBATION_POWERS, k) * noise
    sizes = 10.0 ** rng.uniform(-1, 0.5, m)
    ridge = sizes if kind == "ridge" else np.where(rng.random(m) < 0.5, sizes, 0.0) * rng.integers(2)
    lam, groups = np.full(m, 10.0 ** rng.uniform(-1, 0.5, m if rng.integers(2) else 1)), None
    if kind == "groups":
        members = np.arange(m) // 2
        lam, groups = lam[2 * members], np.append(np.arange(2 * k), 2 * k + members)
    if kind == "ridge" or (kind == "signs" and rng.integers(2)):
        lam, ridge = np.zeros(m), sizes * (kind == "ridge" or m > 2)
    known = np.append(np.zeros(2 * k, dtype=bool), np.ones(m, dtype=bool)) if kind == "signs" else None
    zeros = np.zeros(2 * k)
    return Instance(
        np.hstack([free, copies, others]),
        draw_nu(rng),
        np.append(zeros, ridge),
        np.append(zeros, lam),
        groups=groups,
        nonnegative=known,
        without=np.hstack([free, free, others]),
    )


def collinear_with_all(rng: Rng) -> Instance:
    """The same with any penalty, sample weights and nu < 1."""
    made = beside_collinear(rng, str(rng.choice(["l1", "groups", "signs", "ridge"])))
    nu = float(rng.choice([0.25, 0.5, 0.75, 1.0 - 1e-6]))
    return made._replace(nu=nu, w=np.asarray(10.0 ** rng.uniform(-2, 1, len(made.X))))


def steps_beside_offsets(rng: Rng) -> Instance:
    """Columns of an offset and small steps, penalised or not, alone or with others."""
    kind = str(rng.choice(["none", "ridge", "l1"]))
    n = int(rng.integers(3, (MAX_WITH_L1 if kind == "l1" else MAX_WITHOUT_L1) + 1))
    m, k = int(rng.integers(1, 3)), int(rng.integers(0, 3))
    offset = 2.0 ** rng.uniform(0, 52, m)
    offset = np.where(rng.random(m) < 0.3, 2.0**52, offset)
    step = np.spacing(offset) * np.round(2.0 ** rng.uniform(0, 10, m))
    X = np.hstack([offset + step * rng.integers(0, 2, (n, m)), rng.standard_normal((n, k))])
    X[0, :m], X[1, :m] = offset, offset + step
    weights = np.append(step * 10.0 ** rng.uniform(-20, -1, m), 10.0 ** rng.uniform(-2, 0, k))
    none = np.zeros(m + k)
    a, c = (weights if kind == which else none for which in ("ridge", "l1"))
    without = X.copy()
    without[:, :m] = offset
    return Instance(X, draw_nu(rng), a, c, draw_weights(rng, n), without=without)


def units_by_powers(rng: Rng) -> Instance:
    """Columns in units of 2^-300 to 2^300, with a near copy of one in half of the cases."""
    kind = str(rng.choice(["none", "ridge", "l1"]))
    n = int(rng.integers(4, (MAX_WITH_L1 if kind == "l1" else MAX_WITHOUT_L1) + 1))
    d = int(rng.integers(2, 5))
    X, without, weights = rng.standard_normal((n, d)), None, 10.0 ** rng.uniform(-6, 0, d)
    units, nearly = 2.0 ** rng.integers(-300, 301, d), bool(rng.integers(2))
    if nearly:
        X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(*PERTURBATION_POWERS) * X[:, 1]
        weights[:2] = 0.0
        without = X.copy()
        without[:, 1] = X[:, 0]
        without *= units
    a, c = (weights * units if kind == which else np.zeros(d) for which in ("ridge", "l1"))
    return Instance(X * units, draw_nu(rng), a, c, draw_weights(rng, n), without=without)


def celsius_fahrenheit(rng: Rng) -> Instance:
    """One temperature in two or three units, rounded to decimals, alone or with other columns."""
    n, k = int(rng.integers(4, MAX_WITHOUT_L1 + 1)), int(rng.integers(0, 3))
    celsius = np.round(rng.normal(15.0, 8.0, n), 1)
    scales = [celsius * 1.8 + 32.0, np.round(celsius * 1.8 + 32.0, 2), np.round(celsius + 273.15, 2)]
    chosen = rng.choice(3, int(rng.integers(1, 3)), replace=False)
    others = rng.standard_normal((n, k))
    X = np.column_stack([celsius, *(scales[i] for i in chosen), others])
    without = X.copy()
    without[:, 1 : 1 + len(chosen)] = celsius[:, None]
    a = np.append(np.zeros(1 + len(chosen)), 10.0 ** rng.uniform(-2, 0, k) * rng.integers(2))
    form = str(rng.choice(["array", "array", "sparse", "streamed"]))
    return Instance(X, draw_nu(rng), a, np.zeros(len(a)), form=form, without=without)


def trees(rng: Rng) -> Instance:
    """Directions that are excluded, or nearly, and few enough points for a search for optimal labels."""
    kind = str(rng.choice(["steps", "temperatures", "ridge", "l1"]))
    if kind == "steps":
        return steps_beside_offsets(rng)
    return celsius_fahrenheit(rng)._replace(form="array") if kind == "temperatures" else beside_collinear(rng, kind)


def changed_table(rng: Rng) -> Instance:
    """Many copies of eight rows: later, entries of a column are permuted, or those of a row up to their sum."""
    n, d, integers = 8, int(rng.choice([2, 4])), bool(rng.integers(2))
    X = rng.integers(-20, 21, (n, d)).astype(float) if integers else rng.standard_normal((n, d))
    X[:, 0] = rng.permutation([1.0, -1.0] * 4) - X[:, 1]  # labels with an objective of 0 or nearly 0
    after = X.copy()
    after[:, 0] = np.roll(X[:, 0], 1)
    if integers and rng.integers(2):
        after = X + np.outer(rng.permutation([9.0, 0.0] * 4), np.eye(d)[0] - np.eye(d)[1])
    if rng.integers(3):
        X, after = after, X
    a = np.full(d, 10.0 ** rng.uniform(-2, 0)) if rng.integers(2) else np.zeros(d)
    form = "rows" if rng.integers(3) == 0 else str(rng.choice(["map", "rows"])) + (" of integers" if integers else "")
    return Instance(X, draw_nu(rng), a, np.zeros(d), form=form, after=after)


# Families with their own penalties, numbered by position: append new ones to keep the others unchanged.
WHOLE: dict[str, Callable[[Rng], Instance]] = {
    "large_columns": large_columns,
    "read_by_chunks": lambda rng: of_any(rng)._replace(form="streamed"),
    "sparse_table": sparse_table,
    "weighted": weighted,
    "wide": wide,
    "blocks_outwards": lambda rng: many_columns(rng, blocks),
    "factors_outwards": lambda rng: many_columns(rng, factors),
    "signs_outwards": lambda rng: many_columns(rng, signs),
    "tails_outwards": lambda rng: many_columns(rng, tails),
    "three_points": three_points,
    "grouped": grouped,
    "signed": lambda rng: signed(rng, of_family(rng)),
    "weighted_and_signed": lambda rng: signed(rng, weighted(rng)),
    "groups_outwards": many_groups,
    "collinear_beside_l1": lambda rng: beside_collinear(rng, "l1"),
    "collinear_beside_groups": lambda rng: beside_collinear(rng, "groups"),
    "collinear_beside_signs": lambda rng: beside_collinear(rng, "signs"),
    "collinear_beside_ridge": lambda rng: beside_collinear(rng, "ridge"),
    "collinear_weighted_links": collinear_with_all,
    "steps_beside_offsets": steps_beside_offsets,
    "units_by_powers": units_by_powers,
    "celsius_fahrenheit": celsius_fahrenheit,
    "trees": trees,
    "changed_table": changed_table,
}


def beside_time_stamps() -> Array:
    """Return normal columns, the first replaced by times in nanoseconds within about half a day."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((7, 11))
    X[:, 0] = 1.7e18 + 6e16 * rng.standard_normal(7)
    return X


# A column was excluded next to a larger one, although its ridge was small for both: first of their family.
DROPPED = (
    Instance(np.array([[1e15, 3, 0, 0], [-1e15, 3, 0, 0], [0, -6, 0, 0]]), 1.0, np.ones(4), np.zeros(4)),
    Instance(beside_time_stamps(), 1.0, np.ones(11), np.zeros(11)),
    Instance(np.array([[1e15, 3, 0], [-1e15, 3, 0], [0, -6, 0]]), 0.3, np.ones(3), np.zeros(3), np.arange(1.0, 4.0)),
)
NUS = (0.0, 1e-6, 0.25, 0.5, 0.75, 1.0 - 1e-6, 1.0)
SIZES = (0.0, 1e-8, 1e-3, 0.1, 1.0, 1e3)  # of a weight, in units of its column


def make_instance(family: str, number: int) -> Instance:
    """Return an instance of a family; its number is its seed."""
    if family in WHOLE:
        if family == "large_columns" and number < len(DROPPED):
            return DROPPED[number]
        return WHOLE[family](np.random.default_rng([2017, 21, list(WHOLE).index(family), number]))
    rng = np.random.default_rng([2017, 12, sorted(FAMILIES).index(family), number])
    n, d = int(rng.integers(2, MOST_POINTS + 1)), int(rng.integers(1, MOST_FEATURES + 1))
    X = FAMILIES[family](rng, n, d)
    a, c = draw_penalty(rng, X)
    return Instance(X, float(rng.choice(NUS)), a, c)


def draw_penalty(rng: Rng, X: Array) -> list[Array]:
    """Return weights a and c: none, one size for all columns, or one for each."""
    d, size = X.shape[1], np.abs(X).max(axis=0)
    weights = []
    for _ in range(2):
        kind = rng.integers(3)
        value = rng.choice(SIZES, d) if kind == 2 else np.full(d, rng.choice(SIZES) if kind else 0.0)
        weights.append(np.clip(value * np.where(size > 0.0, size, 1.0), 0.0, 1e90))
    return weights
