"""Weak supervision: optimal labels under bags, order in clips and proportions, compared with heuristics.

It fails if a lower bound exceeds the objective of labels that satisfy the constraints.
"""

import time
from functools import cache
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.typing import Array
from experiments.choice.sets import DESIGN
from experiments.harness.sweep import Cell, Row, cross
from experiments.methods import Deadline
from experiments.optimal.cells import cost_of, whitened_rows

Lists = npt.NDArray[np.intp]  # (k, size), the rows of each bag or clip
KINDS = ("bags", "order", "proportions")
SETS = ("digits 3 or 8", "digits 4 or 9", "wdbc")
SIZES = {"bags": (3, 5, 10), "order": (12,), "proportions": (8, 16)}  # rows in a bag or clip
SEEDS = {"bags": 3, "order": 6, "proportions": 3}
MOST_POINTS = {"full": 250, "smoke": 36}
NU = {"bags": 0.0, "order": 1.0, "proportions": 1.0}  # negative bags exclude a single cluster, so that nu may be 0
RIDGE = 0.3
TWO_POSITIVE = 0.3  # probability that a positive bag has two positive rows, instead of one
TOL = 1e-4
LIMIT = 30.0  # of a search, in seconds of processor time
PATIENCE = 10.0  # factor of the limit that a search may take in wall-clock time
STARTS = (5, 200)  # of alternation
MOST_ROUNDS = 100
FEW, MANY = (f"alternation, {starts} starts" for starts in STARTS)
PROGRAM, OPTIMUM, TRUTH = "quadratic program", "optimum", "true labels"
METHODS = (FEW, MANY, PROGRAM, OPTIMUM)
SETTINGS = {"ridge": RIDGE, "nu": NU, "tolerance": TOL, "seconds": LIMIT, "starts": STARTS}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid: bags, order, proportions."""
    if grid == "smoke":
        return [{"kind": kind, "name": SETS[-1], "size": 6, "seed": 0, "most": MOST_POINTS[grid]} for kind in KINDS]
    parts = [
        cross(kind=[kind], name=SETS, size=SIZES[kind], seed=range(SEEDS[kind]), most=[MOST_POINTS[grid]])
        for kind in KINDS
    ]
    return [cell for part in parts for cell in part]


class Instance(NamedTuple):
    """Standardised columns, true labels, the rows of each bag or clip, and the known facts about the labels.

    The rows ``known`` have the label -1; for proportions, ``counts`` has the number of positive rows in each bag.
    """

    kind: str
    X: Array
    y: Array
    lists: Lists
    known: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.intp]

    @property
    def nu(self) -> float:
        return NU[self.kind]

    @property
    def constraints(self) -> dc.Constraints:
        """The constraints in the form of the package."""
        n, (k, size) = len(self.y), self.lists.shape
        if self.kind == "bags":
            positive = self.lists[~self.known[self.lists[:, 0]]]
            return dc.Constraints(labels=np.where(self.known, -1.0, np.nan), bags=positive)
        if self.kind == "order":  # each clip starts with -1 and ends with +1
            labels = np.full(n, np.nan)
            labels[self.lists[:, 0]], labels[self.lists[:, -1]] = -1.0, 1.0
            return dc.Constraints(labels=labels, order=self.lists)
        E = np.zeros((k, n))
        E[np.repeat(np.arange(k), size), self.lists.ravel()] = 1.0
        return dc.Constraints(equal=(E, 2.0 * self.counts - size))

    def closest(self, scores: Array) -> Array:
        """Return the labels y with the largest scores'y of all that satisfy the constraints, in closed form."""
        y, of_lists = np.where(scores > 0.0, 1.0, -1.0), scores[self.lists]
        at = np.arange(len(self.lists))
        if self.kind == "bags":
            y[self.lists[at, of_lists.argmax(axis=1)]] = 1.0
            y[self.known] = -1.0
        elif self.kind == "order":  # the label rises where the sum of the scores before is lowest
            start = 1 + np.cumsum(of_lists, axis=1)[:, :-1].argmin(axis=1)
            y[self.lists] = np.where(np.arange(self.lists.shape[1]) >= start[:, None], 1.0, -1.0)
        else:
            rank = (-of_lists).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
            y[self.lists] = np.where(rank < self.counts[:, None], 1.0, -1.0)
        return y

    def right(self, labels: Array) -> float:
        """Return F1 of the positive rows for bags, and otherwise the share of right labels."""
        if self.kind == "bags":
            return float(f1_score(self.y, labels))
        return float(np.mean(labels == self.y))


@cache
def read_set(name: str) -> tuple[Array, Array]:
    """Return the columns of a set, and its labels in {-1, 1}."""
    X, y = DESIGN[name]()
    return X, np.where(y > 0, 1.0, -1.0)


def make_instance(kind: str, name: str, size: int, seed: int, most: int) -> Instance:
    """Return an instance, whose seed depends only on its cell."""
    X, y = read_set(name)
    rng = np.random.default_rng([2017, 31, KINDS.index(kind), size, len(X), seed])
    positive, negative = (list(rng.permutation(np.flatnonzero(y == label))) for label in (1.0, -1.0))
    rows: list[list[int]] = []
    counts: list[int] = []
    while len(rows) < most // size and len(positive + negative) >= size:
        # Bags: every other one is negative.  Order: each clip has both labels.  Proportions: rows are drawn at random.
        if kind == "bags":
            count = 1 + int(rng.random() < TWO_POSITIVE) if len(rows) % 2 == 0 else 0
        elif kind == "order":
            count = int(rng.integers(1, size))
        else:
            count = int(rng.hypergeometric(len(positive), len(negative), size))
        if count > len(positive) or size - count > len(negative):
            break
        rows.append([negative.pop() for _ in range(size - count)] + [positive.pop() for _ in range(count)])
        counts.append(count)
    lists = np.arange(size * len(rows)).reshape(-1, size)
    chosen = np.ravel(rows)
    known = np.repeat(np.array(counts) == 0, size) if kind == "bags" else np.zeros(len(chosen), dtype=bool)
    X = X[chosen]
    X = X[:, X.std(axis=0) > 0.0]
    return Instance(kind, standardize_columns(X), y[chosen], lists, known, np.array(counts, dtype=np.intp))


# Alternatives


def rows_of(instance: Instance) -> Array:
    """Return R such that labels y have objective 1 - |R'y|^2 in Eq. (9)."""
    n = len(instance.y)
    balance = np.full((n, 1), (1.0 - instance.nu) ** 0.5 / n)
    return np.column_stack([whitened_rows(instance.X, RIDGE), balance])


def alternate(instance: Instance, R: Array, y: Array) -> Array:
    """Return the labels to which alternation between labels and their best direction converges."""
    for _ in range(MOST_ROUNDS):
        following = instance.closest(R @ (R.T @ y))
        if np.array_equal(following, y):
            break
        y = following
    return y


def alternations(instance: Instance, R: Array, starts: int) -> list[Array]:
    """Return the labels after alternation from random scores; for bags, once from unknown labels +1, as MI-SVM does."""
    scores = np.random.default_rng(0).standard_normal((starts, len(instance.y)))
    if instance.kind == "bags":
        scores[0] = 1.0
    return [alternate(instance, R, instance.closest(score)) for score in scores]


def solve_program(instance: Instance) -> tuple[float, Array]:
    """Return the value of the quadratic program of practice and its solution: labels in [-1, 1] instead of {-1, 1}.

    Source: Bojanowski et al., Weakly supervised action labeling in videos under ordering constraints, ECCV 2014.
    """
    (n, d), lists = instance.X.shape, instance.lists
    y, v, offset = cp.Variable(n), cp.Variable(d), cp.Variable()
    residual = cp.sum_squares(y - instance.X @ v - offset) / n
    objective = residual + instance.nu * cp.square(cp.sum(y) / n) + RIDGE * cp.sum_squares(v)
    rules = [y >= -1.0, y <= 1.0]
    if instance.kind == "bags":
        rules += [y[instance.known] == -1.0]
        rules += [cp.sum(y[bag]) >= 2.0 - len(bag) for bag in lists[~instance.known[lists[:, 0]]]]
    elif instance.kind == "order":
        rules += [y[lists[:, 0]] == -1.0, y[lists[:, -1]] == 1.0]
        rules += [y[lists[:, k]] <= y[lists[:, k + 1]] for k in range(lists.shape[1] - 1)]
    else:
        rules += [cp.sum(y[bag]) == 2.0 * count - len(bag) for bag, count in zip(lists, instance.counts, strict=True)]
    problem = cp.Problem(cp.Minimize(objective), rules)
    problem.solve(solver="CLARABEL")
    return float(problem.value), np.asarray(y.value)


class FirstBound(Deadline):
    """A deadline that records the last lower bound before the first inequality that the constraints do not state."""

    def __init__(self, limit: float, stated: int) -> None:
        super().__init__(limit)
        self.stated, self.lower = stated, 0.0

    def __call__(self, *progress: Any) -> bool:
        """Record the bound, and return whether the time is over."""
        bracket, _, n_cuts = progress
        if n_cuts <= self.stated:
            self.lower = float(bracket.lower)
        return super().__call__()


def measure(kind: str, name: str, size: int, seed: int, most: int) -> Row:
    """Measure all methods on one instance."""
    instance = make_instance(kind, name, size, seed, most)
    R, constraints = rows_of(instance), instance.constraints
    linear = constraints.linear_of(len(instance.y))
    assert linear is not None
    recorder = FirstBound(LIMIT, len(linear.at_most.right))
    found = dc.optimal_labels(
        instance.X, instance.nu, ridge=RIDGE, constraints=constraints, tol=TOL, time_limit=PATIENCE * LIMIT,
        callback=recorder,
    )  # fmt: skip
    seconds = {OPTIMUM: recorder.spent}
    start = time.process_time()
    value, relaxed = solve_program(instance)
    labels = {PROGRAM: alternate(instance, R, instance.closest(relaxed)), OPTIMUM: found.labels, TRUTH: instance.y}
    seconds[PROGRAM] = time.process_time() - start
    for method, starts in zip((FEW, MANY), STARTS, strict=True):
        start = time.process_time()
        labels[method] = min(alternations(instance, R, starts), key=lambda y: cost_of(R, y))
        seconds[method] = time.process_time() - start
    return {
        "points": len(instance.y), "columns": instance.X.shape[1], "positive": int(np.sum(instance.y > 0.0)),
        "status": found.status.name, "lower": found.lower, "upper": found.upper, "gap": found.gap,
        "solved": int(found.gap <= TOL), "cuts": found.n_cuts,
        "lower of root": recorder.lower, "lower of program": value,
        **{f"right by {method}": instance.right(each) for method, each in labels.items() if method != TRUTH},
        **{f"objective of {method}": cost_of(R, each) for method, each in labels.items()},
        **{f"seconds of {method}": spent for method, spent in seconds.items()},
    }  # fmt: skip
