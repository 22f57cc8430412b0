"""Results of the solvers on small instances, in every form of data, compared with those of the versions before.

`python tests/solvers/test_frozen_answers.py` writes tests/solvers/frozen.json, the results of this version.  They are
equal bit for bit only on one machine with one linear algebra; the test checks what holds on any machine.
"""

import json
import tempfile
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from forms import FORMS

import diffrac_cvx as dc

TOL = 1e-3
MAX_ITER = {
    "low_rank": 4000,
    "fista": 600,
}  # `low_rank` reaches the tolerance
FILE = Path(__file__).with_name("frozen.json")
KINDS = {"array": "array", "memory map": "memory map", "sparse": "csr", "dask": "dask"}  # of `FORMS`
QUICK = ("planted 60 x 5", "planted 41 x 9")  # tables that are also read in chunks, at every step
RAMPS = {"ramp": lambda d: np.linspace(0.02, 0.15, d), "some": lambda d: np.where(np.arange(d) % 2, 0.3, 0.0)}
PENALTIES = {
    "none": {},
    "ridge": {"ridge": 0.2},
    "l1": {"lam": 0.08},
    "both": {"lam": 0.05, "ridge": 0.3},
    "by column": {"lam": "ramp", "ridge": "some"},
}


def planted(n, d, seed, noise=0.4):
    """Return two groups along a direction of d columns, in units from 1e-2 to 1e2."""
    rng = np.random.default_rng([23, n, d, seed])
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, d))
    X[:, 0] = y + noise * X[:, 0]
    return X @ np.linalg.qr(rng.standard_normal((d, d)))[0] * np.logspace(-2, 2, d) + 1.0


def counts(n, d, seed):
    """Return small integers, mostly 0, with larger values in half of the columns for half of the rows."""
    means = np.full((n, d), 0.1)
    means[: n // 2, : d // 4] = 1.0
    return np.random.default_rng([24, n, d, seed]).poisson(means).astype(float)


def factors(n, d, seed):
    """Return columns with three common factors, five of which also differ between two groups, at unit variance."""
    rng = np.random.default_rng([25, n, d, seed])
    X = 0.7 * rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) / 3**0.5 + rng.standard_normal((n, d))
    X[: n // 2, :5] += 2.0
    return (X - X.mean(axis=0)) / X.std(axis=0)


TABLES = {
    "planted 60 x 5": lambda: planted(60, 5, 0),
    "planted 41 x 9": lambda: planted(41, 9, 1, noise=1.0),
    "planted 12 x 20": lambda: planted(12, 20, 2),
    "counts 80 x 30": lambda: counts(80, 30, 0),
    "factors 40 x 60": lambda: factors(40, 60, 0),
    "factors 30 x 240": lambda: factors(30, 240, 1),
    "planted 41000 x 4": lambda: planted(41_000, 4, 3, noise=0.7),
}


class Case(NamedTuple):
    """One call of a solver."""

    solver: str
    table: str
    form: str
    nu: float
    penalty: str
    weighted: bool = False

    @property
    def name(self):
        """Description of the case, the key of its result."""
        weights = ", weights" if self.weighted else ""
        return f"{self.solver}, {self.table}, {self.form}, nu {self.nu:g}, {self.penalty}{weights}"

    @property
    def is_slow(self):
        """Whether it takes a second, or a smaller table also covers its strategy."""
        if self.form == "dask":
            return self.name != "low_rank, planted 41 x 9, dask, nu 0.6, both"
        if self.table in QUICK:
            return False
        if self.solver == "fista":
            return self.table in ("factors 40 x 60", "counts 80 x 30") and self.penalty not in ("none", "ridge")
        few_rows = self.table != "planted 41000 x 4"
        return (self.form == "memory map" and few_rows) or (self.table == "factors 30 x 240" and self.penalty == "both")


def cases():
    """Yield all cases, so that every pair of table, form, nu and penalty occurs."""
    for number, (table, penalty) in enumerate(product(list(TABLES)[:5], PENALTIES)):
        for shift, form in enumerate(list(KINDS)[: 4 if table in QUICK else 3]):
            yield Case("low_rank", table, form, (1.0, 0.6)[(number + shift // 2) % 2], penalty)
        yield Case("low_rank", table, "array", (1.0, 0.6)[number % 2], penalty, weighted=True)
        if number % 2 == 0:
            yield Case("fista", table, list(KINDS)[number % 4], 1.0, penalty)
            yield Case("fista", table, "array", 0.6, penalty)
    for form in ("array", "sparse"):
        yield Case("low_rank", "factors 30 x 240", form, 1.0, "both")
        yield Case("low_rank", "factors 30 x 240", form, 0.6, "l1")
    for form, penalty in product(KINDS, ("ridge", "both")):
        yield Case("low_rank", "planted 41000 x 4", form, 1.0, penalty)


@cache
def table_of(name):
    """Return a table (cached)."""
    return TABLES[name]()


def answer(case, folder):
    """Return the stored entries of the result of a case."""
    X = table_of(case.table)
    n, d = X.shape
    weights = {name: RAMPS[one](d) if isinstance(one, str) else one for name, one in PENALTIES[case.penalty].items()}
    weights |= {"sample_weight": 1.0 + np.arange(n) % 4} if case.weighted else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        table, limits = FORMS[KINDS[case.form]](X, folder), {"tol": TOL, "max_iter": MAX_ITER[case.solver]}
        result = getattr(dc, case.solver)(table, nu=case.nu, **weights, **limits)
        y = dc.rounding.kmeans_centered(result.F)
    return {
        "status": result.status.name,
        "n_iter": result.n_iter,
        "lower": result.lower.hex(),
        "upper": result.upper.hex(),
        "labels": "".join("+" if label == y[0] else "-" for label in y[:200]),
        "components": None if result.components is None else str(result.components),
    }


@cache
def stored():
    """Return the stored answers by name."""
    return json.loads(FILE.read_text())


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=[pytest.mark.slow] * case.is_slow) for case in cases()]
)
def test_answers_are_those_of_the_versions_before_in_no_more_steps(case, tmp_path):
    frozen, found = stored()[case.name], SimpleNamespace(**answer(case, tmp_path))
    assert found.status == frozen["status"]
    assert found.components == frozen["components"]
    assert found.n_iter <= 1.4 * frozen["n_iter"] + 20
    lower, upper = (float.fromhex(frozen[end]) for end in ("lower", "upper"))
    if upper - lower <= upper / 2:  # otherwise the bounds are weak, and other labels are as good
        assert found.labels == frozen["labels"]
    now = SimpleNamespace(lower=float.fromhex(found.lower), upper=float.fromhex(found.upper))
    assert now.lower <= upper
    assert lower <= now.upper
    # Other processors and libraries return other points, so the tolerance is that of the call.
    assert now.upper - now.lower <= max(1.01 * (upper - lower), TOL) + 1e-12


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        FILE.write_text(json.dumps({case.name: answer(case, Path(made)) for case in cases()}, indent=1) + "\n")
