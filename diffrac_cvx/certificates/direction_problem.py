"""Problem (15) of the directions, in coordinates where its solvers and its certificates are well conditioned."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.inputs import Array, warn_degenerate
from diffrac_cvx.linalg import (
    inverse_or_one,
    principal_columns,
    psd_factor,
    row_energies,
    triangular_root,
    unit_rows,
    whitener,
)
from diffrac_cvx.penalty import Penalty, weights_of


class Scaled(NamedTuple):
    """A factor U at its best scale, the objective of (15) there, and the energies q_i = x_i'UU'x_i, shape (n,)."""

    U: Array
    value: float
    q: Array


@dataclass(frozen=True, eq=False)
class DirectionProblem:
    r"""Hold the data of min 1 - 2 g(V) + tr VA + sum_ij c_i c_j |V_ij| over V >= 0, with g(V) = mean_i sqrt(x_i'Vx_i).

    The user's matrix is ``L V L'``: a change of coordinates that gives the columns unit scale when c > 0, and
    whitens them when c = 0 (where only the range of A matters, and A becomes the identity).

    Attributes
    ----------
    X : (n, D) array
        Data in these coordinates, the offset's column included when nu < 1.
    R : (D, D) array
        A = R'R, with A = X'X/n + Diag(a)^2.
    c : (D,) array
        Weights of the l1 part.
    L : (d or d + 1, D) array
        The user's coordinates from these.
    W : (D, r) array
        W'(A + Diag(c)^2)W = I, on the range of A + Diag(c)^2.
    scale : (d or d + 1,) array
        Units that give the user's columns norm one.
    has_offset : bool
        Whether the last column is the offset's, that is nu < 1.
    """

    X: Array
    R: Array
    c: Array
    L: Array
    W: Array
    scale: Array
    has_offset: bool

    @cached_property
    def A(self) -> Array:
        """A = X'X/n + Diag(a)^2, shape (D, D)."""
        return self.R.T @ self.R

    @cached_property
    def box(self) -> Array:
        """c_i c_j off the diagonal, 0 on it, shape (D, D): the diagonal part of the penalty is linear on V >= 0."""
        box = np.outer(self.c, self.c)
        np.fill_diagonal(box, 0.0)
        return box

    @cached_property
    def zero_rows(self) -> npt.NDArray[np.bool_]:
        """Which rows are zero, shape (n,): they count in the means and nowhere else."""
        return np.asarray(~self.X.any(axis=1))

    @cached_property
    def Z(self) -> Array:
        """Whitened data X W, shape (n, r)."""
        return self.X @ self.W if self.has_l1 else self.X

    @property
    def has_l1(self) -> bool:
        """Whether any c_i > 0."""
        return bool(self.c.any())

    def gain(self, U: Array) -> float:
        """g(UU') = mean_i sqrt(x_i'UU'x_i)."""
        return float(np.mean(np.sqrt(row_energies(self.X, U))))

    def cost(self, U: Array) -> float:
        """T(UU') = tr UU'A + sum_ij c_i c_j |UU'|_ij, as a sum of nonnegative terms."""
        quadratic = np.sum((self.R @ U) ** 2)
        if not self.has_l1:
            return float(quadratic)
        cU = self.c[:, None] * U
        return float(quadratic + np.abs(cU @ cU.T).sum())

    def best_scale(self, U: Array) -> Scaled:
        """Return the best multiple of a factor; its objective is 1 - g^2/T, and there g = T = 1 - objective."""
        gain, cost = self.gain(U), self.cost(U)
        if cost == 0.0 or gain == 0.0:
            return Scaled(np.zeros_like(U), 1.0, np.zeros(len(self.X)))
        U = U * (gain / cost)
        return Scaled(U, max(1.0 - gain**2 / cost, 0.0), row_energies(self.X, U))

    def directions(self, U: Array) -> Array:
        """Return V in the user's coordinates."""
        LU = self.L @ U
        return LU @ LU.T

    def labels_factor(self, U: Array) -> Array:
        """Return F, shape (n, r), with Y = FF' optimal for V = UU' (appendix C.2): the rows of X U at unit norm."""
        return unit_rows(self.X @ principal_columns(U, rtol=1e-16))

    def from_user(self, V: Array) -> Array:
        """Return the factor, in these coordinates, of the user's V."""
        size = len(self.L)
        if self.has_offset and V.shape == (size - 1, size - 1):
            V = np.pad(V, (0, 1))
        if V.shape != (size, size):
            raise DataError(f"V has shape {V.shape}; for these data and this nu it must be ({size}, {size})")
        # Unit columns first: the factor of a badly scaled V keeps its small entries, and where directions are not
        # determined, least squares drops exactly the part in the null space of X'X/n + Diag(a)^2.
        units = 1.0 / self.scale
        G = psd_factor(V * np.outer(units, units), rtol=1e-16)
        return np.asarray(np.linalg.lstsq(self.L * units[:, None], G)[0])


def direction_problem(X: Array, nu: float, penalty: Penalty, *, warn: bool = True) -> DirectionProblem:
    """Return problem (15) for centred X; nu < 1 by the augmentation [X, 1] with a = sqrt(nu / (1 - nu)) (Eq. 14)."""
    n, d = X.shape
    a, c = weights_of(penalty, d)
    if nu < 1.0:
        X = np.column_stack([X, np.ones(n)])
        a = np.append(a, (nu / (1.0 - nu)) ** 0.5)  # the paper prints nu / (1 - nu)
        c = np.append(c, 0.0)
    scale = inverse_or_one(np.sqrt(np.mean(X**2, axis=0) + a**2 + c**2))
    X, a, c = X * scale, a * scale, c * scale
    W = whitener(np.vstack([X / n**0.5, np.diag(a), np.diag(c)]))
    if c.any():
        R = triangular_root(np.vstack([X / n**0.5, np.diag(a)]))
        return DirectionProblem(X=X, R=R, c=c, L=np.diag(scale), W=W, scale=scale, has_offset=nu < 1.0)
    r = W.shape[1]
    if warn and not a[:d].any():
        warn_if_uninformative(n, int(X[:, :d].any(axis=0).sum()), r - (nu < 1.0))
    return DirectionProblem(
        X=X @ W, R=np.eye(r), c=np.zeros(r), L=scale[:, None] * W, W=np.eye(r), scale=scale, has_offset=nu < 1.0
    )


def warn_if_uninformative(n: int, d: int, rank: int) -> None:
    """Warn where an affine-invariant relaxation does not distinguish labellings, or directions."""
    if 0 < rank and rank >= n - 1:
        warn_degenerate(f"X has rank {rank} on {n} points: every labelling is fitted exactly; add a penalty", depth=6)
    elif rank < min(n - 1, d):
        warn_degenerate(f"X has rank {rank} < d = {d}: the labels are determined, the direction is not", depth=6)


def offset_only(X: Array, nu: float) -> Array | None:
    """Return V where only the offset is left, b = 1 - nu with value nu: at nu = 0, or without features; else None."""
    if nu > 0.0 and X.any():
        return None
    size = X.shape[1] + int(nu < 1.0)
    V = np.zeros((size, size))
    if nu < 1.0:
        V[-1, -1] = (1.0 - nu) ** 2
    return V
