"""Reference results of the solvers on small instances, in every form of data, compared from version to version.

    python tests/solvers/frozen.py          writes tests/solvers/frozen.json, the results of this version
    python tests/solvers/frozen.py --exact  lists the results that are not bit for bit equal to the stored ones

Exact equality holds only on one machine with one linear algebra; `test_frozen_answers` tests what holds on any machine.
"""

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse

import diffrac_cvx as dc

TOL = 1e-3
MAX_ITER = {
    "low_rank": 4000,
    "fista": 600,
}  # `low_rank` reaches the tolerance: results at max_iter depend on the processor
QUICK = ("planted 60 x 5", "planted 41 x 9")  # tables that are also read in chunks, at every step
FROZEN_FILE = Path(__file__).with_suffix(".json")
FORMS = ("array", "memory map", "sparse", "dask")
PENALTIES = {
    "none": {},
    "ridge": {"ridge": 0.2},
    "l1": {"lam": 0.08},
    "both": {"lam": 0.05, "ridge": 0.3},
    "by column": {"lam": "ramp", "ridge": "some"},
}


def planted(n: int, d: int, seed: int, noise: float = 0.4) -> np.ndarray:
    """Return two groups along a direction of d columns, in units from 1e-2 to 1e2."""
    rng = np.random.default_rng([23, n, d, seed])
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, d))
    X[:, 0] = y + noise * X[:, 0]
    return X @ np.linalg.qr(rng.standard_normal((d, d)))[0] * np.logspace(-2, 2, d) + 1.0


def counts(n: int, d: int, seed: int) -> np.ndarray:
    """Return small integers, mostly 0, with larger values in half of the columns for half of the rows."""
    rng = np.random.default_rng([24, n, d, seed])
    means = np.full((n, d), 0.1)
    means[: n // 2, : d // 4] = 1.0
    return rng.poisson(means).astype(float)


def factors(n: int, d: int, seed: int) -> np.ndarray:
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


@dataclass(frozen=True)
class Case:
    """One call of a solver."""

    solver: str
    table: str
    form: str
    nu: float
    penalty: str
    weighted: bool

    @property
    def name(self) -> str:
        """Description of the case, the key of its result."""
        weights = ", weights" if self.weighted else ""
        return f"{self.solver}, {self.table}, {self.form}, nu {self.nu:g}, {self.penalty}{weights}"


def cases() -> Iterator[Case]:
    """Yield all cases, so that every pair of table, form, nu and penalty occurs."""
    small = list(TABLES)[:5]
    for number, (table, penalty) in enumerate(product(small, PENALTIES)):
        for shift, form in enumerate(FORMS if table in QUICK else FORMS[:3]):
            nu = (1.0, 0.6)[(number + shift // 2) % 2]
            yield Case("low_rank", table, form, nu, penalty, False)
        yield Case("low_rank", table, "array", (1.0, 0.6)[number % 2], penalty, True)
        if number % 2 == 0:
            yield Case("fista", table, FORMS[number % 4], 1.0, penalty, False)
            yield Case("fista", table, "array", 0.6, penalty, False)
    for form in ("array", "sparse"):
        yield Case("low_rank", "factors 30 x 240", form, 1.0, "both", False)
        yield Case("low_rank", "factors 30 x 240", form, 0.6, "l1", False)
    for form, penalty in product(FORMS, ("ridge", "both")):
        yield Case("low_rank", "planted 41000 x 4", form, 1.0, penalty, False)


@cache
def table_of(name: str) -> np.ndarray:
    """Return a table (cached)."""
    return TABLES[name]()


def in_form(X: np.ndarray, form: str, folder: Path) -> object:
    """Return a table in the form that users pass."""
    if form == "memory map":
        np.save(folder / "table.npy", X)
        return np.load(folder / "table.npy", mmap_mode="r")
    if form == "sparse":
        return scipy.sparse.csr_array(X)
    if form == "dask":
        import dask.array as da

        return da.from_array(X, chunks=(max(len(X) // 3, 1), -1))
    return X


def solve(case: Case) -> dc.Result:
    """Return the result of a case."""
    X = table_of(case.table)
    n, d = X.shape
    ramps = {"ramp": np.linspace(0.02, 0.15, d), "some": np.where(np.arange(d) % 2, 0.3, 0.0)}
    weights = {
        name: ramps[value] if isinstance(value, str) else value for name, value in PENALTIES[case.penalty].items()
    }
    given = {"sample_weight": 1.0 + np.arange(n) % 4} if case.weighted else {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        result = getattr(dc, case.solver)(
            in_form(X, case.form, Path(folder)), nu=case.nu, **weights, **given, tol=TOL, max_iter=MAX_ITER[case.solver]
        )
        result.F  # noqa: B018  # read while the file exists
        return result


def answer(result: dc.Result) -> dict[str, object]:
    """Return the stored entries of a result."""
    y = dc.rounding.kmeans_centered(result.F)
    G = result.G.toarray() if scipy.sparse.issparse(result.G) else np.asarray(result.G)
    return {
        "status": result.status.name,
        "n_iter": result.n_iter,
        "value": result.value.hex(),
        "lower": result.lower.hex(),
        "upper": result.upper.hex(),
        "G": hashlib.sha256(np.ascontiguousarray(G).tobytes()).hexdigest()[:16],
        "labels": "".join("+" if label == y[0] else "-" for label in y[:200]),
        "components": None if result.components is None else str(result.components),
    }


def main(arguments: list[str]) -> int:
    """Write the results, or compare them bit for bit."""
    found = {case.name: answer(solve(case)) for case in cases()}
    if "--exact" not in arguments:
        FROZEN_FILE.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    frozen = json.loads(FROZEN_FILE.read_text())
    changed = [name for name in frozen if found.get(name) != frozen[name]]
    for name in changed:
        now = found.get(name) or {}
        print(name, {key: (was, now.get(key)) for key, was in frozen[name].items() if now.get(key) != was})
    print(f"{len(changed)} of {len(frozen)} results differ from the stored ones")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
