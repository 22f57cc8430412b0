"""Isotropic tables with a direction that separates the points exactly, and the weight from which it is lost."""

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row

GROUPS = 8
LARGE_WEIGHT = 0.5  # weight at which no two groups are coupled
TOL = 1e-8
FACTOR_BELOW, FACTOR_ABOVE = 0.8, 1.25  # multiples of the smallest weight at which the blocks are checked
SMALL_FACTOR = 0.1  # of the weight for normal columns, at which two-valued columns are checked
JOINED = 0.01  # relative distance of the norm of a block to its bound that counts as coupled
LOG2_ROWS = 8  # of the two-valued table


def group_norms_of(planted: int, decay: float) -> Array:
    """Return the norms of the parts of a unit direction in its groups, each `decay` times the previous one."""
    norms = decay ** np.arange(planted)
    return np.asarray(norms / np.linalg.norm(norms))


def predicted_threshold(group_norms: Array, d: int) -> float:
    r"""Return the approximate smallest :math:`w^2 / (1 + a^2 + w^2)` of block-diagonal solutions for normal columns.

    .. math:: \frac1d \cdot \frac{\max_{g \ne h} t_g t_h}{\sum_{g \ne h} t_g^2 t_h^2}, \qquad t_g = |v_g| / |v|,
              \qquad \text{for } s \text{ equal parts } \frac{1}{(s - 1) d}.
    """
    products = np.outer(group_norms, group_norms)
    np.fill_diagonal(products, 0.0)
    return float(products.max() / np.sum(products**2) / d)


def normal_table(n: int, size: int, group_norms: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return X (n, d) and v with X'X = nI and Xv = y for balanced y; the other directions are normal."""
    d = GROUPS * size
    y = rng.permutation(np.resize([-1.0, 1.0], n))
    others = np.linalg.qr(np.column_stack([np.ones(n), y, rng.standard_normal((n, d - 1))]))[0][:, 2:]
    v = np.zeros(d)
    for g, norm in enumerate(group_norms):
        part = rng.standard_normal(size)
        v[g * size : (g + 1) * size] = norm * part / np.linalg.norm(part)
    return np.outer(y, v) + n**0.5 * others @ np.linalg.svd(v[None])[2][1:], v


def two_valued_table(size: int, rng: np.random.Generator) -> Array:
    """Return a table of entries -1 and 1 with X'X = nI, and y = half the sum of the first columns of four groups.

    Columns are products of subsets of m signs, over all 2^m choices of these: the first columns are a, b, c and -abc,
    whose sum is -2 or 2.
    """
    n, d = 2**LOG2_ROWS, GROUPS * size
    signs = 1.0 - 2.0 * ((np.arange(n)[:, None] >> np.arange(LOG2_ROWS)) & 1)
    chosen = [1, 2, 4, 7]
    others = rng.permutation(np.setdiff1d(np.arange(1, n), chosen))[: d - 4]
    bits = (np.arange(n)[:, None] >> np.arange(LOG2_ROWS)) & 1  # of the subsets
    walsh = np.stack([np.prod(signs[:, bits[subset] == 1], axis=1) for subset in [*chosen, *others]], axis=1)
    walsh[:, 3] *= -1.0
    places = np.arange(d)
    firsts = size * np.arange(4)
    order = np.concatenate([firsts, np.setdiff1d(places, firsts)])
    X = np.empty_like(walsh)
    X[:, order] = walsh
    return X


def measure_law(columns: str, size: int, planted: int, decay: float, ridge: float, per_d: int, replication: int) -> Row:
    r"""Return the smallest weight at which no two planted groups are coupled, from one solution.

    With X'X = nI and V block diagonal the penalty is :math:`(a^2 + w^2) \mathrm{tr} V`: the block-diagonal optimum is
    the same for all weights, up to a factor, and :math:`M = \tfrac1n X^\top \mathrm{Diag}(q^{-1/2}) X` is
    :math:`(1 + a^2 + w^2) M_0`.  By the theorem of components it is optimal if and only if
    :math:`(1 + a^2 + w^2) |M_{0,gh}|_2 \le w^2`.  Both sides of the weight found are then solved: ``joined`` is in how
    :math:`(1 + a^2 + w^2) |M_{0,gh}|_2 \le w^2`.  Both sides of this weight are then solved: ``joined`` is the number
    of blocks that contain the planted columns at the solution below it, ``separate`` the certified number above it.
    """
    d = GROUPS * size
    rng = np.random.default_rng([2017, 26, size, planted, int(100 * decay), int(100 * ridge), per_d, replication])
    group_norms, two_values = group_norms_of(planted, decay), columns == "two values"
    X = two_valued_table(size, rng) if two_values else normal_table(per_d * d, size, group_norms, rng)[0]
    labels, used = np.repeat(np.arange(GROUPS), size), slice(planted * size)
    solution = solve(X, dc.Penalty(lam=LARGE_WEIGHT, ridge=ridge, groups=labels))
    q = np.sum((X @ np.asarray(solution.V)) * X, axis=1)
    M = (X.T * q**-0.5) @ X / len(X) / (1.0 + ridge + LARGE_WEIGHT)
    blocks = M.reshape(GROUPS, size, GROUPS, size).transpose(0, 2, 1, 3)
    norms = np.linalg.norm(blocks, 2, axis=(2, 3))
    np.fill_diagonal(norms, 0.0)
    threshold, about = float(norms[:planted, :planted].max()), predicted_threshold(group_norms, d)
    row: Row = {"n": len(X), "d": d, "share": threshold, "predicted": about}
    base = SMALL_FACTOR * about if two_values else threshold
    for name, factor, rtol in (("joined", FACTOR_BELOW, JOINED), ("separate", FACTOR_ABOVE, None)):
        penalty = dc.Penalty(lam=factor * (1.0 + ridge) * base / (1.0 - base), ridge=ridge, groups=labels)
        components = dc.find_components(X, solve(X, penalty), penalty=penalty, rtol=rtol)
        row[name] = len(np.unique(components[used]))
    return row


def solve(X: Array, penalty: dc.Penalty) -> dc.Result:
    """Solve to a small gap."""
    return dc.low_rank(X, 1.0, penalty, tol=TOL, time_limit=30.0)
