"""Coordinates of problem (15), and the maps between them and the user's."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, as_matrix
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import Factor, Sparse, as_sparse, dense, is_sparse, scale_both, scale_rows
from diffrac_cvx.points.linear_algebra import psd_factor
from diffrac_cvx.points.points import Excluded, LazyFactor
from diffrac_cvx.problem.result import Result


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates of a problem: the user's matrix is ``L V L'``, and the offset, if any, is last."""

    scale: Array  # (d or d + 1,), scales the user's columns to norm about one: powers of two, so no rounding
    has_offset: bool  # whether the last column is the offset's: nu < 1
    excluded: Excluded | None = None  # the user's excluded columns, zero here, see `exclude`
    basis: Array | None = None  # L, (d or d + 1, D), if the coordinates are whitened; None if L = Diag(scale)

    @property
    def n_excluded(self) -> int:
        """Number of excluded, unpenalised columns: all certified statements are about X without them."""
        return 0 if self.excluded is None else len(self.excluded.columns)

    @property
    def factors(self) -> Array:
        """Factors from unit columns to the user's: the scale, and 0 for excluded columns."""
        if self.excluded is None:
            return self.scale
        factors = self.scale.copy()
        factors[self.excluded.columns] = 0.0
        return factors

    def inverse_transform(self, U: Factor) -> Factor:
        """Return G with V = GG' in the user's coordinates."""
        return scale_rows(U, self.factors) if self.basis is None else np.asarray(self.basis @ U)

    def inverse_transform_multiplier(self, C: Factor) -> Factor:
        """Return a multiplier of the l1 penalty in the user's coordinates."""
        return scale_both(C, 1.0 / self.scale)

    def labels_factor(self, U: Factor, points: Array) -> LazyFactor:
        """Return the factor of labels for centred points in the user's units, possibly new points."""
        points = np.column_stack([points, np.ones(len(points))]) if self.has_offset else points
        rows = points * self.factors if self.basis is None else points @ self.basis
        return array_points(rows).labels_factor(U)

    def scale_factor(self, G: Factor) -> Factor:
        """Return the factor of the user's V = GG' for columns of norm one; the offset's row may be missing."""
        size = len(self.scale)
        if self.has_offset and G.shape[0] == size - 1:
            G = scipy.sparse.csc_array(scipy.sparse.vstack([as_sparse(G), scipy.sparse.csc_array((1, G.shape[1]))]))
        if G.shape[0] != size:
            raise DataError(f"V has {G.shape[0]} rows. For these data and this nu, pass {size} rows.")
        G = G if self.excluded is None else self.excluded.eliminate(G)
        return scale_rows(G, 1.0 / self.scale)

    def transform_matrix(self, V: Array) -> Array:
        """Return the factor of the user's V in these coordinates, by its factor for columns of norm one.

        A factor of a badly scaled V would lose small entries.
        """
        size = len(self.scale)
        if V.shape not in ((size, size), (size - int(self.has_offset),) * 2):
            raise DataError(f"V has shape {V.shape}. For these data and this nu, pass shape ({size}, {size}).")
        scaled = dense(self.scale_factor(self.scale_factor(V).T))
        return dense(self.transform_factor(scale_rows(psd_factor(scaled, rtol=1e-16), self.scale)))

    def transform_factor(self, G: Factor) -> Factor:
        """Return the factor of the user's V = GG' in these coordinates."""
        G = self.scale_factor(G)
        if self.basis is None:
            return G
        # If directions are undetermined, least squares drops exactly the part in the null space of X'X/n + Diag(a)^2.
        return np.asarray(np.linalg.lstsq(self.basis / self.scale[:, None], dense(G))[0])

    def transform_result(self, V: Result | npt.ArrayLike | Sparse, name: str = "V") -> Factor:
        """Return the factor of a result or of the user's matrix in these coordinates."""
        if not isinstance(V, Result):
            if is_sparse(V):
                require_memory(8.0 * V.shape[0] * V.shape[1], f"{name} as one block", "pass the result of a solver")
                V = dense(V)
            return self.transform_matrix(as_matrix(V, name))
        if V.G is None:
            raise DataError("the result has no V. Pass a result of low_rank, fista or solve(v_space(...)).")
        return self.transform_factor(V.G)
