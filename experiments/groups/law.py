"""Isotropic tables with a direction that separates the points exactly, and the weight from which it is lost."""

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row

GROUPS = 8
LARGE_WEIGHT = 0.5  # weight at which no two groups are coupled
TOL = 1e-8


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


def measure_law(size: int, planted: int, decay: float, ridge: float, per_d: int, replication: int) -> Row:
    r"""Return the smallest weight at which no two planted groups are coupled, from one solution.

    With X'X = nI and V block diagonal the penalty is :math:`(a^2 + w^2) \mathrm{tr} V`: the block-diagonal optimum is
    the same for all weights, up to a factor, and :math:`M = \tfrac1n X^\top \mathrm{Diag}(q^{-1/2}) X` is
    :math:`(1 + a^2 + w^2) M_0`.  By the theorem of components it is optimal if and only if
    :math:`(1 + a^2 + w^2) |M_{0,gh}|_2 \le w^2`.
    """
    d = GROUPS * size
    rng = np.random.default_rng([2017, 26, size, planted, int(100 * decay), int(100 * ridge), per_d, replication])
    group_norms = group_norms_of(planted, decay)
    X, _ = normal_table(per_d * d, size, group_norms, rng)
    penalty = dc.Penalty(lam=LARGE_WEIGHT, ridge=ridge, groups=np.repeat(np.arange(GROUPS), size))
    V = np.asarray(dc.low_rank(X, 1.0, penalty, tol=TOL, time_limit=30.0).V)
    M = (X.T * np.sum((X @ V) * X, axis=1) ** -0.5) @ X / len(X) / (1.0 + ridge + LARGE_WEIGHT)
    norms = np.linalg.norm(M.reshape(GROUPS, size, GROUPS, size).transpose(0, 2, 1, 3), 2, axis=(2, 3))
    np.fill_diagonal(norms, 0.0)
    share = float(norms[:planted, :planted].max())
    return {"n": len(X), "d": d, "share": share, "predicted": predicted_threshold(group_norms, d)}
