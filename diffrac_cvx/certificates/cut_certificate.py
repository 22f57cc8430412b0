r"""Certificates of optimal labels by clique inequalities, verified on the raw table without any part of the search.

Labels that satisfy the constraints are y = S z, with one sign z_g for each chunklet g (for each point, without
constraints).  For an odd number q of chunklets and any signs s, sum_{i<j} s_i s_j z_i z_j >= -(q - 1)/2.  So with
multipliers g_k >= 0, the matrix T = -1/2 sum_k g_k sum_{i<j} s_i s_j (E_ij + E_ji) has z'Tz <= sum_k g_k (q_k - 1)/2.
For any mu and any C with |C_jk| <= c_j c_k, if

    M = [[Diag(mu) + T - (1 - nu) w w', B], [B', A + C]],  w = S'p, B = S'PX, A = X'PX + Diag(a)^2, P = Diag(p),

is positive semidefinite, then (z, -v)'M(z, -v) >= 0 says that Eq. (9) is at least 1 - sum mu - sum_k g_k (q_k - 1)/2 at
all labels and all v.  If only M >= -e I, it is at least that less e (m + |v|^2), and the best v has |v|^2 <= 1/l with l
the least eigenvalue of A + Diag(c)^2, because v'Av + (sum c|v|)^2 <= 1 there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.points import Indices
from diffrac_cvx.points.reading import raw_table
from diffrac_cvx.problem.result import Bracket

UNIT_ROUNDOFF = 2.0**-53
FORMAT = 1  # version of the file format
MARGIN = 1e-10  # by which the bounds of a certificate are wider than those computed


class Cliques(NamedTuple):
    """Clique inequalities on q chunklets each: -sum_{i<j} s_i s_j z_i z_j <= (q - 1)/2, and their multipliers."""

    points: Indices  # (k, q), chunklets, different ones
    signs: npt.NDArray[np.int8]  # (k, q), -1 or +1
    multipliers: Array  # (k,), >= 0

    @property
    def right(self) -> float:
        """Right side (q - 1)/2."""
        return float(self.points.shape[1] - 1) / 2.0

    def subset(self, mask: npt.NDArray[np.bool_]) -> "Cliques":
        """Return the inequalities of a mask."""
        return Cliques(self.points[mask], self.signs[mask], self.multipliers[mask])

    def entries(self, m: int) -> tuple[Indices, Array]:
        """Return the places i m + j, i < j, of the pairs in an (m, m) matrix, (k, q (q - 1)/2), and -s_i s_j there."""
        first, second = np.triu_indices(self.points.shape[1], 1)
        low = np.minimum(self.points[:, first], self.points[:, second])
        high = np.maximum(self.points[:, first], self.points[:, second])
        return low * m + high, -(self.signs[:, first] * self.signs[:, second]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CutCertificate:
    """Labels, and multipliers that prove a lower bound on Eq. (9) at all labels that satisfy the constraints.

    Attributes
    ----------
    labels, direction : (n,) and (d,) arrays
        Labels, and a direction v at which their objective is at most ``upper``.
    lower, upper : float
        Certified bounds on the optimum of Eq. (9).
    nu : float
        Weight of the imbalance penalty.
    ridge, lam : (d,) arrays
        Weights of the ridge, a_j^2, and of the squared l1 norm, c_j^2.
    weights : (n,) array
        Sample weights.
    membership, sign : (n,) arrays
        Chunklet of each point, numbered from 0, and its sign in it: y_i = sign_i z_g.
    columns : (d,) array of bool
        Columns that are not excluded; the bounds refer to the table of these columns, see `Result`.
    diagonal : (m,) array
        mu, one number for each chunklet.
    cliques : tuple of Cliques
        Inequalities with positive multipliers, for each number of points.
    C : (d, d) array
        Multiplier of the l1 term; (0, 0) without one.
    """

    labels: Array
    direction: Array
    lower: float
    upper: float
    nu: float
    ridge: Array
    lam: Array
    weights: Array
    membership: Indices
    sign: Array
    columns: npt.NDArray[np.bool_]
    diagonal: Array
    cliques: tuple[Cliques, ...]
    C: Array

    @property
    def bracket(self) -> Bracket:
        """Lower and upper bound."""
        return Bracket(self.lower, self.upper, int(np.sum(~self.columns)))

    def __str__(self) -> str:
        n, m, cuts = len(self.labels), len(self.diagonal), sum(len(each.points) for each in self.cliques)
        sets = f"{n} points" if m == n else f"{n} points in {m} chunklets"
        return f"{self.bracket} on Eq. (9) at the best labels of {sets}, nu = {self.nu:g}, by {cuts} inequalities"

    def in_units(self, scale: Array, X: Array) -> "CutCertificate":
        """Return the certificate for a table X whose columns, times factors, are those of the table of this one."""
        C, squares = self.C / np.outer(scale, scale) if self.C.size else self.C, scale**2
        moved = replace(self, direction=self.direction * scale, ridge=self.ridge / squares, lam=self.lam / squares, C=C)
        return moved.with_bounds(X)

    def with_bounds(self, X: Array) -> "CutCertificate":
        """Return the certificate with the bounds that it proves on a table, less a margin for other processors."""
        problem, C = self.problem(X), self.C if self.C.size else None
        lower = problem.lower_bound(self.diagonal, self.cliques, C) - MARGIN
        return replace(self, lower=lower, upper=problem.upper_bound(self.labels, self.direction) + MARGIN)

    def problem(self, X: Array) -> "LabelProblem":
        """Return the problem of the certificate on a table."""
        names = ("nu", "ridge", "lam", "weights", "membership", "sign", "columns")
        return LabelProblem(X, **{name: getattr(self, name) for name in names})

    def save(self, file: str | PathLike[str]) -> None:
        """Write the certificate to a file of NumPy arrays (.npz)."""
        fields = {name: value for name, value in vars(self).items() if name != "cliques"}
        for each in self.cliques:
            q = each.points.shape[1]
            fields |= {f"points{q}": each.points, f"signs{q}": each.signs, f"multipliers{q}": each.multipliers}
        with open(file, "wb") as stream:
            np.savez_compressed(stream, format=FORMAT, **fields)

    @classmethod
    def load(cls, file: str | PathLike[str]) -> "CutCertificate":
        """Read a certificate from a file.

        Raises
        ------
        DataError
            If the file is not a certificate.
        """
        try:
            with np.load(file, allow_pickle=False) as read:
                arrays = dict(read)
            names = ["labels", "direction", "ridge", "lam", "weights", "membership", "sign", "columns", "diagonal", "C"]
            fields: dict[str, Any] = {name: arrays[name] for name in names}
            fields |= {name: float(arrays[name]) for name in ("lower", "upper", "nu")}
            sizes = sorted(int(name.removeprefix("points")) for name in arrays if name.startswith("points"))
            cliques = [Cliques(*(arrays[f"{part}{q}"] for part in ("points", "signs", "multipliers"))) for q in sizes]
            return cls(cliques=tuple(cliques), **fields)
        except (KeyError, ValueError, EOFError, TypeError) as error:
            raise DataError(f"{file} is not a certificate of labels. Write one with CutCertificate.save.") from error


def check_certificate(X: npt.ArrayLike, certificate: CutCertificate | str | PathLike[str]) -> CutCertificate:
    """Verify a certificate of labels on a table, and return it; the problem that it is about is in its fields.

    The bounds are computed again from the table, in O((m + d)^3) and rounding errors included, without any search.

    Source: Eq. (9); clique inequalities as in Deza and Laurent, Geometry of Cuts and Metrics, 1997; not in the paper.

    Parameters
    ----------
    X : (n, d) array
        The table, as given to `optimal_labels`.
    certificate : CutCertificate or path
        The certificate or its file.

    Returns
    -------
    CutCertificate
        The certificate, whose bounds hold.

    Raises
    ------
    DataError
        If the file is not a certificate, or does not prove its bounds on this table.
    """
    found = certificate if isinstance(certificate, CutCertificate) else CutCertificate.load(certificate)
    reason = reason_to_refuse(raw_table(X), found)
    if reason:
        raise DataError(f"the certificate is refused: {reason}. It proves nothing about this table.")
    return found


def reason_to_refuse(X: Array, given: CutCertificate) -> str:
    """Return why the certificate does not prove its bounds on a table; empty if it does."""
    n, d = X.shape
    m, y = len(given.diagonal), given.labels
    shapes = {"labels": n, "direction": d, "ridge": d, "lam": d, "weights": n, "membership": n, "sign": n, "columns": d}
    wrong = [name for name, size in shapes.items() if np.shape(getattr(given, name)) != (size,)]
    if wrong:
        return f"its {wrong[0]} does not fit the {n} points and {d} columns"
    numbers = [X, given.direction, given.ridge, given.lam, given.weights, given.diagonal, given.C]
    numbers += [each.multipliers for each in given.cliques]
    if not all(np.all(np.isfinite(each)) for each in numbers):
        return "some of its numbers, or of the table, are not finite"
    if not (0.0 <= given.nu <= 1.0 and min(given.ridge.min(), given.lam.min(), given.weights.min()) >= 0.0):
        return "nu is outside [0, 1], or a weight is negative"
    if not (np.all(np.abs(y) == 1.0) and np.all(np.abs(given.sign) == 1.0)):
        return "labels or signs are not -1 or +1"
    if given.membership.dtype.kind != "i" or not np.array_equal(np.unique(given.membership), np.arange(m)):
        return "a point is in no chunklet, or a chunklet has no point"
    if given.columns.dtype != bool:
        return "its columns are not marked by booleans"
    z = np.zeros(m)
    z[given.membership] = given.sign * y
    if not np.array_equal(given.sign * z[given.membership], y):
        return "the labels violate its constraints"
    for each in given.cliques:
        k, q = np.shape(each.points)
        if q % 2 == 0 or np.shape(each.signs) != (k, q) or np.shape(each.multipliers) != (k,):
            return "an inequality is not one of an odd number of signed points"
        if not (np.all(np.abs(each.signs) == 1) and np.all(each.multipliers >= 0.0)):
            return "a sign is not -1 or +1, or a multiplier is negative"
        ordered = np.sort(each.points, axis=1)
        different = np.all(ordered[:, 1:] > ordered[:, :-1])
        if not (each.points.dtype.kind == "i" and different and np.all((ordered >= 0) & (ordered < m))):
            return "an inequality has a chunklet twice, or one that does not exist"
    problem = given.problem(X)
    C, half_width = given.C, np.sqrt(np.outer(given.lam, given.lam)) * (1.0 - 8 * UNIT_ROUNDOFF)
    if C.size and (C.shape != (d, d) or not np.array_equal(C, C.T) or np.any(np.abs(C) > half_width)):
        return "C is not symmetric, or |C_jk| exceeds c_j c_k"
    lower = problem.lower_bound(given.diagonal, given.cliques, C if C.size else None)
    if not lower >= given.lower:
        return f"its multipliers prove {lower!r} and not the lower bound {given.lower!r}"
    upper = problem.upper_bound(y, given.direction)
    if not upper <= given.upper:
        return f"the objective of its labels may be {upper!r}, above {given.upper!r}"
    return ""


class LabelProblem:
    """Eq. (9) for the signs z of m chunklets, in columns scaled by powers of two, with bounds on rounding errors.

    Parameters
    ----------
    X : (n, d) array
        Table, not centred.
    nu, ridge, lam, weights, membership, sign, columns
        As in `CutCertificate`.
    """

    def __init__(
        self,
        X: Array,
        nu: float,
        ridge: Array,
        lam: Array,
        weights: Array,
        membership: Indices,
        sign: Array,
        columns: npt.NDArray[np.bool_],
    ) -> None:
        n, m, self.nu, self.columns = len(X), int(membership.max()) + 1, nu, columns
        self.p = weights / np.sum(weights)
        X, ridge, lam = X[:, columns], ridge[columns], lam[columns]
        column_error = centering_errors(X)
        X = X - self.p @ X
        sizes = np.sqrt(self.p @ X**2 + ridge + lam)
        self.scale = 2.0 ** -np.round(np.log2(np.where(sizes > 0.0, sizes, 1.0)))  # to sizes from 0.7 to 1.5
        self.X, self.ridge, self.c = X * self.scale, ridge * self.scale**2, np.sqrt(lam) * self.scale
        self.column_error = column_error * self.scale
        d, centering = self.X.shape[1], float(np.linalg.norm(self.column_error))
        self.B, self.w = np.zeros((m, d)), np.bincount(membership, sign * self.p, m)
        np.add.at(self.B, membership, (sign * self.p)[:, None] * self.X)
        self.A = self.X.T @ (self.p[:, None] * self.X) + np.diag(self.ridge)
        trace = float(np.trace(self.A)) + 1.0
        # By Cauchy-Schwarz, sums of absolute values over points are at most the roots of these traces.
        self.error = (1.0 - nu) * relative(2 * n + 32)
        self.error += 2.0 * (centering + relative(2 * n + 32) * trace**0.5)
        self.error += centering * (2.0 * trace**0.5 + centering) + relative(2 * n + 32) * trace
        metric = self.A + np.diag(self.c**2)
        least = 0.5 * float(np.linalg.eigvalsh(metric)[0]) if d else 1.0
        margin = self.error + 2.0 * factorization_error(metric)
        # Least eigenvalue of the metric of v, certified at half its computed value; 0 if that is not positive.
        self.least = least if least > 0.0 and has_cholesky(metric - (least + margin) * np.eye(d)) else 0.0

    def lower_bound(self, mu: Array, cliques: Sequence[Cliques], C: Array | None = None) -> float:
        """Return a certified lower bound on Eq. (9) at all signs; -infinity if the multipliers prove none."""
        M, error, total = self.dual_matrix(mu, cliques, C)
        if self.least == 0.0 or not has_cholesky(M):
            return -np.inf
        error += factorization_error(M)
        return float(1.0 - total - error * (len(mu) + 1.0 / self.least) * (1.0 + relative(16)) - 4.0 * UNIT_ROUNDOFF)

    def dual_matrix(self, mu: Array, cliques: Sequence[Cliques], C: Array | None) -> tuple[Array, float, float]:
        """Return M, a bound on the norm of its error, and an upper bound on sum mu + sum_k g_k (q_k - 1)/2."""
        (m, d), T, error = self.B.shape, np.zeros(len(mu) ** 2), self.error
        total, size, n_terms = float(np.sum(mu)), float(np.abs(mu).sum()), m + 32
        for each in cliques:
            places, coefficients = each.entries(m)
            halves = 0.5 * np.broadcast_to(each.multipliers[:, None], places.shape)
            T += np.bincount(places.ravel(), (coefficients * halves).ravel(), m * m)
            sums, most = np.bincount(places.ravel(), halves.ravel(), m * m), np.bincount(places.ravel()).max(initial=0)
            error += 2.0 * relative(int(most) + 16) * float(np.linalg.norm(sums))
            weight = each.right * float(np.sum(each.multipliers))
            total, size, n_terms = total + weight, size + weight, n_terms + len(each.points)
        M = np.zeros((m + d, m + d))
        M[:m, :m] = T.reshape(m, m) + T.reshape(m, m).T - (1.0 - self.nu) * np.outer(self.w, self.w)
        M[np.arange(m), np.arange(m)] += mu
        M[:m, m:], M[m:, :m], M[m:, m:] = self.B, self.B.T, self.A
        if C is not None:
            M[m:, m:] += C[np.ix_(self.columns, self.columns)] * np.outer(self.scale, self.scale)
        return M, error + relative(16) * float(np.linalg.norm(M)), total + 4.0 * relative(n_terms) * size

    def upper_bound(self, y: Array, v: Array) -> float:
        """Return an upper bound on Eq. (9) at labels of the n points and a direction in the user's units, (d,)."""
        n, d = self.X.shape
        u = v[self.columns] / self.scale
        mean = float(self.p @ y)
        error = (
            relative(d + 16) * (np.abs(self.X) @ np.abs(u)) + float(self.column_error @ np.abs(u)) + relative(n + 16)
        )
        residual = float(self.p @ (np.abs(y - mean - self.X @ u) + error) ** 2)
        penalty = float(self.ridge @ u**2 + (self.c @ np.abs(u)) ** 2)
        total = residual + self.nu * (abs(mean) + relative(n + 16)) ** 2 + penalty
        return total * (1.0 + relative(2 * n + 4 * d + 64))


def centering_errors(X: Array) -> Array:
    """Return bounds on the errors of centred entries, (d,): n + 8 roundings of a column's largest one, in the mean."""
    return np.asarray(2.0 * relative(len(X) + 8) * np.abs(X).max(axis=0, initial=0.0))


def factorization_error(M: Array) -> float:
    """Return a bound on how far a matrix whose Cholesky factorisation succeeds may be from positive semidefinite.

    Source: Rump, Verification of positive definiteness, BIT 46, 2006.
    """
    return relative(2 * len(M) + 16) * float(np.abs(np.diag(M)).sum())


def relative(k: float) -> float:
    """Return the bound k u / (1 - k u) on the relative error of a sum of k products."""
    return k * UNIT_ROUNDOFF / (1.0 - k * UNIT_ROUNDOFF)


def has_cholesky(M: Array) -> bool:
    """Whether the Cholesky factorisation of a symmetric matrix succeeds, see `factorization_error`."""
    try:
        return bool(np.all(np.isfinite(np.linalg.cholesky(M))))
    except np.linalg.LinAlgError:
        return False
