r"""Number of points for a unique solution without a penalty, compared with d + d(d-1)/4, for several noise laws.

Points are (y_i, z_i), y_i = +-1.  There is another solution if and only if some C >= 0 of trace 1 with some a and b
has a y_i^2 + 2 y_i b'z_i + z_i'C z_i = 0 for all i (see `experiments.theory.unique_solution`).  Minimising the sum of
squares over a and b leaves r = P (z_i'C z_i), P the projection off the columns y_i^2 and y_i z_i, and FISTA minimises
|r|^2 over C.  The minimum is positive if \sum_i r_i z_i z_i' > 0 for any such r, since its product with C would be
\sum_i r_i z_i'C z_i, which is 0 if there is such a C.  Only this certificate leads to the answer "unique".
"""

from pathlib import Path

import numpy as np
import pandas as pd
import scipy.linalg
import scipy.sparse.linalg

from diffrac_cvx.typing import Array
from experiments.harness.findings import Finding, Rule
from experiments.harness.intervals import Interval, median_of
from experiments.harness.style import ACCENT, GRAY, PAGE, SECONDARY, draw_intervals, panels
from experiments.harness.sweep import Cell, Row, cross
from experiments.theory.unique_solution import statistical_dimension

REPLICATIONS, LARGE_D, FEWER_REPLICATIONS = 30, 64, 10  # of streams of points; fewer from this dimension on
STREAM = 1.6  # length of the stream of points, relative to d + d(d-1)/4
PRECISION = 0.002  # relative, of the number of points
FREEDOM = 3  # degrees of freedom of Student's law: no fourth moment
MOST, CHECK_INTERVAL = 6000, 5  # iterations, and those between two checks of the smallest eigenvalue
NONE_LEFT = 1e-9  # root mean square of r below which another solution exists
POSITIVE = 1e-12  # smallest eigenvalue, over n times the root mean square of r, that exceeds rounding errors
PRECISE, LONGER = (
    1e-2,
    1.05,
)  # tolerance of the largest eigenvalue, whose inverse is the step size, and its safety factor
LAWS = {  # noise distributions of variance one, with their names, colours and markers
    "gaussian": ("Gaussian", ACCENT, "o"),
    "uniform": ("uniform", SECONDARY, "s"),
    "student": (f"Student, {FREEDOM} degrees", "#8fa01d", "^"),
}
SETTINGS = {"stream": STREAM, "precision": PRECISION, "freedom": FREEDOM}

TITLE = "Without a penalty: a unique solution from d + d(d-1)/4 points"
ABOUT = (
    "Noiseless labels and d - 1 columns of independent noise of variance one. The smallest number of points with a "
    f"unique solution is bracketed by bisection on one stream of points per replication ({REPLICATIONS} replications, "
    f"{FEWER_REPLICATIONS} from d = {LARGE_D} on); the median over them is the number at which half of the instances have a "
    "unique solution. Nothing is fitted."
)
FROM_D = 32
CLOSE = (0.97, 1.03)
HOLDS = Rule(
    "with Gaussian noise, half of the instances have a unique solution at n = d + d(d-1)/4",
    f"agrees if the interval lies within {CLOSE[0]:g} to {CLOSE[1]:g} at every d from {FROM_D} on, in part if it overlaps this range",
    lambda t: all(ratio.within(*CLOSE) for ratio in ratios_of(t, "gaussian", FROM_D)),
    lambda t: all(ratio.meets(*CLOSE) for ratio in ratios_of(t, "gaussian", FROM_D)),
    tested=lambda t: len(ratios_of(t, "gaussian", FROM_D)) >= 2,
)
DEPENDS = Rule(
    "the law depends on the noise distribution",
    f"agrees if for uniform or Student noise the interval at the largest d lies outside {CLOSE[0]:g} to {CLOSE[1]:g}, in part if the "
    "ratio is below it",
    lambda t: any(not end.meets(*CLOSE) for end in last_of(t)),
    lambda t: any(end.value < CLOSE[0] for end in last_of(t)),
    tested=lambda t: len(last_of(t)) == len(LAWS) - 1,
)
RULES = (HOLDS, DEPENDS)


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    if grid != "full":
        return cross(law=LAWS, d=(6, 10), replication=range(2))
    sizes = {"gaussian": (8, 12, 16, 24, 32, 48, 64, 100), "uniform": (8, 16, 32, 64), "student": (8, 16, 32, 64)}
    return [
        {"law": law, "d": d, "replication": replication}
        for law, dimensions in sizes.items()
        for d in dimensions
        for replication in range(REPLICATIONS if d < LARGE_D else FEWER_REPLICATIONS)
    ]


def stream_of(law: str, d: int, replication: int) -> tuple[Array, Array]:
    """Return labels (n,) and noise (n, d - 1); a problem uses the first points."""
    n = int(np.ceil(STREAM * statistical_dimension(float(d))))
    rng = np.random.default_rng([2017, 78, list(LAWS).index(law), d, replication])
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    size = (n, d - 1)
    if law == "gaussian":
        return y, rng.standard_normal(size)
    if law == "uniform":
        return y, rng.uniform(-(3**0.5), 3**0.5, size)
    return y, rng.standard_t(FREEDOM, size) / (FREEDOM / (FREEDOM - 2)) ** 0.5


def measure(law: str, d: int, replication: int) -> Row:
    """Bracket the smallest number of points with a unique solution; more points only help, so bisection is valid."""
    y, Z = stream_of(law, d, replication)
    low, high = d, len(y) + 1
    while high - low > max(1.0, PRECISION * high):
        middle = (low + high) // 2
        only = is_only_solution(y[:middle], Z[:middle])
        if only is None:
            break
        low, high = (low, middle) if only else (middle, high)
    return {"other": low, "only": high, "expected": statistical_dimension(float(d))}


def is_only_solution(y: Array, Z: Array) -> bool | None:
    """Decide whether the solution is supported by the first coordinate alone; None if undecided in `MOST` iterations.

    Parameters
    ----------
    y : (n,) array
        Labels.
    Z : (n, m) array
        Remaining coordinates.
    """
    n, m = Z.shape
    if n <= m + 1:
        return False
    rng = np.random.default_rng(2017)
    known, _ = np.linalg.qr(np.column_stack([y**2, y[:, None] * Z]))

    def residual_of(C: Array) -> Array:
        forms = np.einsum("ij,ij->i", Z @ C, Z)
        return np.asarray(forms - known @ (known.T @ forms))

    def gradient_of(r: Array) -> Array:
        return np.asarray(Z.T @ (r[:, None] * Z))

    hessian = scipy.sparse.linalg.LinearOperator(
        (m**2, m**2), lambda entries: gradient_of(residual_of(entries.reshape(m, m))).ravel()
    )
    curvature = LONGER * scipy.sparse.linalg.eigsh(hessian, 1, v0=rng.standard_normal(m**2), tol=PRECISE)[0][0]
    C = ahead = np.eye(m) / m
    r = r_ahead = residual_of(C)
    momentum = 1.0
    for k in range(MOST):
        following = nearest_of_trace_one(ahead - gradient_of(r_ahead) / curvature)
        r_next = residual_of(following)
        size = float(np.linalg.norm(r_next))
        if size <= NONE_LEFT * n**0.5:
            return False
        if k % CHECK_INTERVAL == 0:
            least = scipy.linalg.eigh(gradient_of(r_next), eigvals_only=True, subset_by_index=[0, 0])[0]
            if least > POSITIVE * n**0.5 * size:
                return True
        if np.sum((ahead - following) * (following - C)) > 0:
            momentum = 1.0
        after = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
        extrapolation = (momentum - 1.0) / after
        ahead, r_ahead = following + extrapolation * (following - C), r_next + extrapolation * (r_next - r)
        C, r, momentum = following, r_next, after
    return None


def nearest_of_trace_one(A: Array) -> Array:
    """Return the nearest positive semidefinite matrix of trace 1."""
    values, vectors = np.linalg.eigh(A)
    falling = values[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(A) + 1)
    values = np.maximum(values - excess[np.nonzero(falling > excess)[0][-1]], 0.0)
    return np.asarray((vectors * values) @ vectors.T)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the ratios for all laws."""
    return [Finding("Median of n over d + d(d-1)/4", ratios(table), [HOLDS, DEPENDS])]


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return the median of n over d + d(d-1)/4, one row per dimension and one column per law."""
    ratio = (table["other"] + table["only"]) / 2 / table["expected"]
    found = ratio.groupby([table["d"], table["law"]]).agg(lambda values: [median_of(values.to_numpy())]).unstack("law")
    found = found.map(lambda one: one[0] if isinstance(one, list) else np.nan)
    return found[[law for law in LAWS if law in found]].rename(columns={law: name for law, (name, *_) in LAWS.items()})


def ratios_of(found: pd.DataFrame, law: str, from_d: int = 0) -> list[Interval]:
    """Return the ratios of a law that were measured, from some dimension on."""
    name = LAWS[law][0]
    return list(found.loc[found.index >= from_d, name].dropna()) if name in found else []


def last_of(found: pd.DataFrame) -> list[Interval]:
    """Return the ratio at the largest dimension for each law but the Gaussian one."""
    return [ratios_of(found, law)[-1] for law in LAWS if law != "gaussian" and ratios_of(found, law)]


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw n over d + d(d-1)/4 with intervals for each law."""
    with panels(stem, 1, 1, 2.4, width=0.5 * PAGE) as (_, ax):
        for law, (name, color, marker) in LAWS.items():
            found = ratios_of(ratios(table), law)
            d = np.sort(table.loc[table["law"] == law, "d"].unique())
            look = {"color": color, "marker": marker, "ms": 3, "lw": 1, "capsize": 2, "label": name}
            draw_intervals(ax, d, found, **look)
        ax.axhline(1.0, color=GRAY, ls="--", lw=1)
        ax.set(ylabel="points over $d + d(d-1)/4$", ylim=(0, None), xlabel="d (log scale)")
        ax.set_xscale("log", base=2)
        ax.set_xticks([8, 16, 32, 64, 128], ["8", "16", "32", "64", "128"])
        ax.legend(frameon=False, fontsize=6)
