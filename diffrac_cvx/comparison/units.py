"""Units of evidence of a table: rows that repeat others, nearly repeat them or are linked to them count once."""

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import UNCONSTRAINED, Chunklets
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.points.rows import Indices
from diffrac_cvx.points.table import Table, array_table

MAX_COARSE_SHARE = (
    0.2  # equal pairs of rows over those of the least tied column; below, the ties of columns explain them
)
LATTICE_FACTOR = 3  # a single column on a lattice of fewer cells than this times n is coarse
ISOLATION = 3.0  # ratio of the distance to other rows to the largest step inside a set of near copies, in 3 columns
MAX_COPIES = 0.05  # of the rows, in one set of near copies
MIN_COPIED = 0.5  # of the rows, in sets of near copies


def linked_units(chunklets: Chunklets, n: int) -> Indices:
    """Return the unit of each point, from 0: points linked to equal labels are one, unless their labels are known."""
    if not chunklets.max_size:
        return np.arange(n)
    known = chunklets.membership == chunklets.labeled
    node = np.where(known, 2 * chunklets.n_chunklets + np.arange(n), 2 * chunklets.membership + (chunklets.sign < 0.0))
    return numbered(node)


def blocks_of(points: Table) -> Indices:
    """Return the block of each point, from 0: points that are linked, unless their labels are known, are one block."""
    n, chunklets = len(points), points.chunklets
    if not chunklets.max_size:
        return np.arange(n)
    known = chunklets.membership == chunklets.labeled
    return numbered(np.where(known, chunklets.n_chunklets + np.arange(n), chunklets.membership))


def copied_units(X: Array) -> tuple[Indices, str]:
    """Return the unit of each row, from 0, and which rows are one unit: "", "equal" or "nearly equal".

    Rows that are equal are one unit, and so are isolated sets of near copies.

    Rows that are equal because all columns take few values, such as answers from 1 to 5, are different units.
    """
    n, columns = len(X), different_columns(X)
    if not columns.shape[1]:
        return np.arange(n), ""
    rows = np.unique(columns, axis=0, return_inverse=True)[1].ravel()
    if len(np.unique(rows)) < n:
        return (np.arange(n), "") if is_coarse(columns, rows) else (numbered(rows), "equal")
    return near_copies(standardize_columns(columns)), "nearly equal"


def numbered(values: npt.NDArray[np.generic]) -> Indices:
    """Return the values numbered from 0 in the order of their first entries."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def merged(points: Table, unit: Indices) -> Table:
    """Return the weighted mean of the points of each unit, with the sum of their weights.

    The labels of points in a unit must be linked to be equal, or be free.
    """
    n_units = int(unit.max()) + 1
    if n_units == len(points):
        return points
    p = points.normalized_weights
    total = np.bincount(unit, p).astype(np.float64)
    first = np.unique(unit, return_index=True)[1]
    deviations = (points.array() - points.array()[first[unit]]).T  # exactly 0 for equal rows
    means = np.stack([np.bincount(unit, p * column) for column in deviations], axis=1) / total[:, None]
    means += points.array()[first]
    is_first = np.zeros(len(points), dtype=bool)
    is_first[first] = True
    chunklets = points.chunklets.subset(is_first)
    is_free = not chunklets.has_known_labels and chunklets.n_chunklets == n_units
    weights = None if np.ptp(total) <= 1e-12 * total.max() else total
    return array_table(means, weights, UNCONSTRAINED if is_free else chunklets)


# Copies


def different_columns(X: Array) -> Array:
    """Return the columns that vary, each once."""
    varying = (column for column in X.T if np.ptp(column) > 0.0)
    kept = {column.tobytes(): column for column in map(np.ascontiguousarray, varying)}
    return np.stack(list(kept.values()), axis=1) if kept else np.empty((len(X), 0))


def equal_pairs(values: npt.NDArray[np.generic]) -> float:
    """Return the number of pairs of equal values."""
    counts = np.unique(values, return_counts=True)[1].astype(float)
    return float(np.sum(counts * (counts - 1.0)) / 2.0)


def is_coarse(X: Array, rows: Indices) -> bool:
    """Return whether the ties of the columns explain the equal rows.

    Columns with few values also make pairs of rows that agree in all columns but one, copies of rows do not.
    """
    if X.shape[1] == 1:
        return on_coarse_lattice(X[:, 0])
    equal = equal_pairs(rows)
    if equal < MAX_COARSE_SHARE * min(equal_pairs(column) for column in X.T):
        return True
    codes = np.random.default_rng(0).integers(0, 2**62, len(X))  # a code for each rank of a value
    coded = [codes[np.unique(column, return_inverse=True)[1]] * (2 * j + 1) for j, column in enumerate(X.T)]
    total = np.sum(coded, axis=0)  # modulo 2^64
    return sum(equal_pairs(total - code) - equal for code in coded) >= equal


def on_coarse_lattice(column: Array) -> bool:
    """Return whether the values lie on a lattice with few cells, such as whole numbers."""
    steps = np.diff(np.unique(column))
    cells = steps / steps.min()
    return bool(np.all(np.abs(cells - np.round(cells)) < 1e-6) and cells.sum() < LATTICE_FACTOR * len(column))


def near_copies(Z: Array) -> Indices:
    """Return the unit of each standardised row: isolated small sets by single linkage, if they hold half the rows.

    A set is isolated if its distance to all other rows is several times the largest step inside it.
    """
    n, d = Z.shape
    gram = Z @ Z.T
    squares = np.diag(gram)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * gram, 0.0))
    tree = linkage(squareform(distances, checks=False), "single")
    children, size = tree[:, :2].astype(np.intp), np.append(np.ones(n, dtype=np.intp), tree[:, 3].astype(np.intp))
    height, parent = np.append(np.zeros(n), tree[:, 2]), np.full(2 * n - 1, 2 * n - 2)
    for node, pair in enumerate(children):
        parent[pair] = n + node
    is_small = (size > 1) & (size <= max(2, int(MAX_COPIES * n)))
    isolated = is_small & (height[parent] >= ISOLATION ** max(1.0, 3.0 / d) * height)
    top = np.arange(2 * n - 1)
    for node in reversed(range(2 * n - 2)):  # parents have larger numbers
        above = top[parent[node]]
        top[node] = above if isolated[above] else node
    units = numbered(top[:n])
    is_copied = isolated[top[:n]]
    return units if np.mean(is_copied) >= MIN_COPIED else np.arange(n)
