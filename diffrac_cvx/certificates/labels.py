r"""Lower bounds on Eq. (9) over all labels by inequalities on products of labels, from the table as given.

Labels that satisfy the constraints are y = S z, with one sign z_g for each chunklet g (for each point, without
constraints).  Inequalities sum_ij t_k,ij z_i z_j <= r_k, the rows, hold for all signs z; `Rows` verifies the reason for
each.  With multipliers g_k >= 0, T = sum_k g_k t_k, any mu and any C with |C_jk| <= c_j c_k and C_jj = c_j^2, if

    M = [[Diag(mu) + T - (1 - nu) w w', B], [B', A + C]],  w = S'p, B = S'PX, A = X'PX + Diag(a)^2, P = Diag(p),

is positive semidefinite, then (z, -v)'M(z, -v) >= 0 implies that Eq. (9) is at least 1 - sum mu - sum_k g_k r_k at all
labels and all v.  If only M >= -e I, this bound is reduced by e (m + |v|^2).  The best v has |v|^2 <= 1/l, where l is
the smallest eigenvalue of A + Diag(c)^2, because v'Av + (sum c|v|)^2 <= 1 there.

With linear constraints a'z <= b and E z = f, z_0 = 1 is the sign of the chunklet of known labels, or of an additional
chunklet without points.  Then the products (b - a'z z_0)(1 - s z_0 z_j) >= 0 are valid rows too, and any z'(E - f
e_0')'L z = 0 may be added to M.

For K > 2 clusters, K unit vectors with products -1/(K - 1) replace the signs z, and V = sum vv' over K - 1 directions
replaces vv': the objective is that of `certify_clusters`.  Then Y_ij >= -1/(K - 1), and the inequalities of `Sets` hold
for Z = ((K - 1) Y + 1)/K, which is 1 in a cluster and 0 between two.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_constraints import LinearConstraints
from diffrac_cvx.points.rows import Indices

UNIT_ROUNDOFF = 2.0**-53
CLIQUE = 0  # kind of inequality: on all pairs of an odd number of signed chunklets
PRODUCT, PARTITION = 1, 2  # kinds of inequalities in `Products` and `Sets`; only `LabelProblem` builds their rows


class Rows(NamedTuple):
    """Inequalities sum_k coefficients_k z_first_k z_second_k <= right on signs z, with multipliers.

    For an odd number q of chunklets and signs s, sum_{i<j} s_i s_j z_i z_j >= -(q - 1)/2: a clique has the coefficients
    -s_i s_j at its pairs i < j, in lexicographic order.  With q = 3 it is a triangle.
    """

    kinds: Indices  # (k,), kind of each inequality
    ends: Indices  # (k,), number of entries up to the end of each row
    first: Indices  # (e,), chunklets i
    second: Indices  # (e,), chunklets j > i
    coefficients: Array  # (e,)
    right: Array  # (k,)
    multipliers: Array  # (k,), >= 0

    def invalid(self) -> str:
        """Return the reason why a row is not a valid inequality; empty if all rows are valid."""
        if np.any(self.kinds != CLIQUE):
            return "a row is of an unknown kind"
        lengths = np.diff(self.ends, prepend=0)
        for length in np.unique(lengths).tolist():
            q = round((1.0 + (1.0 + 8.0 * length) ** 0.5) / 2.0)
            if q < 3 or q % 2 == 0 or q * (q - 1) // 2 != length:
                return "a row is not on all pairs of an odd number of chunklets"
            rows = np.flatnonzero(lengths == length)
            at = (self.ends[rows] - length)[:, None] + np.arange(length)
            i, j = np.triu_indices(q, 1)
            chunklets = np.column_stack([self.first[at[:, 0]], self.second[at[:, : q - 1]]])
            signs = np.column_stack([np.ones(len(rows)), -self.coefficients[at[:, : q - 1]]])
            if not np.all(chunklets[:, 1:] > chunklets[:, :-1]):
                return "a row has a chunklet twice, or its chunklets are not in order"
            if not (
                np.array_equal(self.first[at], chunklets[:, i]) and np.array_equal(self.second[at], chunklets[:, j])
            ):
                return "a row is not on all pairs of its chunklets"
            if not (np.all(np.abs(signs) == 1.0) and np.array_equal(self.coefficients[at], -signs[:, i] * signs[:, j])):
                return "the coefficients of a row are not those of signs"
            if not np.all(self.right[rows] == (q - 1) / 2.0):
                return "the right side of a row is not that of its chunklets"
        return ""


def clique_rows(chunklets: Indices, signs: npt.NDArray[np.int8], multipliers: Array) -> Rows:
    """Return clique inequalities on q chunklets each, (k, q), increasing, as rows."""
    (k, q), (i, j) = chunklets.shape, np.triu_indices(chunklets.shape[1], 1)
    coefficients = -(signs[:, i] * signs[:, j]).astype(np.float64).ravel()
    ends, right = (1 + np.arange(k)) * len(i), np.full(k, (q - 1) / 2.0)
    return Rows(
        np.full(k, CLIQUE), ends, chunklets[:, i].ravel(), chunklets[:, j].ravel(), coefficients, right, multipliers
    )


def join_rows(*parts: Rows) -> Rows:
    """Return the rows of all parts."""
    offsets = np.cumsum([0, *(len(part.first) for part in parts)])
    shifted = [part._replace(ends=part.ends + offset) for part, offset in zip(parts, offsets, strict=False)]
    return Rows(*(np.concatenate(arrays) for arrays in zip(*shifted, strict=True)))


class Products(NamedTuple):
    """Products (b - a'z)(1 - s z_j) >= 0 of given inequalities a'z <= b; b - a'z >= 0 itself if j is the anchor."""

    rows: Indices  # (k,), given inequalities
    chunklets: Indices  # (k,), j
    signs: npt.NDArray[np.int8]  # (k,), s
    multipliers: Array  # (k,), >= 0

    def subset(self, mask: npt.NDArray[np.bool_]) -> "Products":
        """Return the products selected by a mask."""
        return Products(self.rows[mask], self.chunklets[mask], self.signs[mask], self.multipliers[mask])


class Sets(NamedTuple):
    """Inequalities on partitions into K clusters, and their multipliers.

    With a center i and a set T of two points or more, Z(i, T) - Z(T, T) <= 1, where each pair counts once: if T has b
    points in i's cluster, b - b (b - 1) / 2 <= 1.  Without a center, at least two of K + 1 or more points share a
    cluster.
    """

    centers: Indices  # (k,), -1 for none
    members: Indices  # (k, w), points of the set, padded with -1
    multipliers: Array  # (k,), >= 0

    def subset(self, mask: npt.NDArray[np.bool_]) -> "Sets":
        """Return the inequalities selected by a mask."""
        return Sets(self.centers[mask], self.members[mask], self.multipliers[mask])

    def invalid(self, n_clusters: int) -> str:
        """Return the reason why an inequality does not hold for all partitions; empty if all do."""
        together = np.sort(np.column_stack([self.centers, self.members]), axis=1)
        if np.any((together[:, 1:] == together[:, :-1]) & (together[:, 1:] >= 0)):
            return "a set has a point twice"
        sizes = np.sum(self.members >= 0, axis=1)
        if np.any(sizes < np.where(self.centers < 0, n_clusters + 1, 2)):
            return "a set has too few points"
        return ""

    def rows(self, n_clusters: int) -> Rows:
        """Return the inequalities as rows on Y, with right sides rounded up."""
        (k, w), K, sizes = self.members.shape, n_clusters, np.sum(self.members >= 0, axis=1)
        pairs, has_center, (i, j) = sizes * (sizes - 1) // 2, self.centers >= 0, np.triu_indices(w, 1)
        ends_of = np.dstack([self.members[:, i], self.members[:, j]])
        with_center = np.dstack([np.broadcast_to(self.centers[:, None], (k, w)), self.members])
        places = np.sort(np.concatenate([ends_of, with_center], axis=1), axis=2)
        coefficients = np.broadcast_to(np.append(-np.ones(len(i)), np.ones(w)), places.shape[:2])
        used = np.all(places >= 0, axis=2)
        right = np.where(has_center, (K - sizes + pairs), pairs - K) / (K - 1.0)
        first, second = places[used].T
        kinds = np.full(k, PARTITION)
        ends = np.cumsum(used.sum(axis=1))
        return Rows(kinds, ends, first, second, coefficients[used], np.nextafter(right, np.inf), self.multipliers)


class LabelDual(NamedTuple):
    """Multipliers that prove a bound on Eq. (9) over labels, see `LabelProblem`."""

    mu: Array  # (m,)
    rows: Rows | None = None
    C: Array | None = None  # (d, d), off the diagonal, in the user's units, for all columns
    products: Products | None = None
    equal: Array | None = None  # L, (l, m), of equations
    sets: Sets | None = None  # of K > 2 clusters
    floors: Array | None = None  # (m, m), >= 0, of Y_ij >= -1/(K - 1), above the diagonal


class LabelProblem:
    """Eq. (9) for the signs z of m chunklets, in columns scaled by powers of two, with bounds on rounding errors.

    Parameters
    ----------
    X : (n, d) array
        Table, not centred.
    nu : float
        Weight of the imbalance penalty; any number, as a multiplier of a given imbalance.
    a, c : (d,) arrays
        Roots of the weights of the ridge and of the squared l1 norm.
    weights : (n,) array
        Weights of the points, on any scale.
    membership, sign : (n,) arrays
        Chunklet of each point, numbered from 0, and its sign in it: y_i = sign_i z_g.
    columns : (d,) array of bool
        Columns that are not excluded.
    linear : LinearConstraints, optional
        Inequalities and equations on the labels of the points.
    labeled : int
        Chunklet of the points with known labels, or -1; for linear constraints.
    n_clusters : int
        K; the signs of chunklets are +1 if it exceeds 2.
    """

    def __init__(
        self,
        X: Array,
        nu: float,
        a: Array,
        c: Array,
        weights: Array,
        membership: Indices,
        sign: Array,
        columns: npt.NDArray[np.bool_],
        linear: LinearConstraints | None = None,
        labeled: int = -1,
        n_clusters: int = 2,
    ) -> None:
        self.n_clusters = n_clusters
        n, m, self.nu, self.columns = len(X), int(membership.max()) + 1, nu, columns
        self.linear, self.anchor = None, labeled
        if linear is not None:
            m, self.anchor = (m, labeled) if labeled >= 0 else (m + 1, m)
            self.linear = linear.on_signs(membership, sign, self.anchor, m)
        shrunk = weights / np.max(weights)
        self.p = shrunk / np.sum(shrunk)
        X, a, c = X[:, columns], a[columns], c[columns]
        column_error = centering_errors(X)
        X = X - self.p @ X
        sizes = np.sqrt(self.p @ X**2 + a**2 + c**2)
        self.scale = 2.0 ** -np.round(np.log2(np.where(sizes > 0.0, sizes, 1.0)))  # so that the sizes become 0.7 to 1.5
        self.X, self.ridge, self.c = X * self.scale, (a * self.scale) ** 2, c * self.scale
        self.column_error = column_error * self.scale
        d, centering = self.X.shape[1], float(np.linalg.norm(self.column_error))
        self.B, self.w = np.zeros((m, d)), np.bincount(membership, sign * self.p, m)
        np.add.at(self.B, membership, (sign * self.p)[:, None] * self.X)
        self.A = self.X.T @ (self.p[:, None] * self.X) + np.diag(self.ridge)
        trace = float(np.trace(self.A)) + 1.0
        # By Cauchy-Schwarz, sums of absolute values over points are at most the roots of these traces.
        self.error = abs(1.0 - nu) * relative(2 * n + 32)
        self.error += 2.0 * (centering + relative(2 * n + 32) * trace**0.5)
        self.error += centering * (2.0 * trace**0.5 + centering) + relative(2 * n + 32) * trace
        metric = self.A + np.diag(self.c**2)
        least = 0.5 * float(np.linalg.eigvalsh(metric)[0]) if d and np.all(np.isfinite(metric)) else float(d == 0)
        margin = self.error + 2.0 * factorization_error(metric)
        # Smallest eigenvalue of the metric of v, certified at half its computed value; 0 if that is not positive.
        self.least = least if least > 0.0 and has_cholesky(metric - (least + margin) * np.eye(d)) else 0.0

    @property
    def box(self) -> Array:
        """Bounds c_j c_k on |C_jk| in the user's units, for all columns, rounded down; 0 on the diagonal."""
        roots = np.zeros(len(self.columns))
        roots[self.columns] = self.c / self.scale
        box = np.outer(roots, roots) * (1.0 - 8 * UNIT_ROUNDOFF)
        np.fill_diagonal(box, 0.0)
        return box

    @property
    def equations(self) -> Array:
        """Coefficients of the equations, (l, m), with their right sides at the anchor."""
        assert self.linear is not None
        E = self.linear.equal.coefficients.toarray()
        E[:, self.anchor] = -self.linear.equal.right
        return np.asarray(E)

    def product_rows(self, products: Products) -> Rows:
        """Return products as rows of inequalities; right sides are rounded up, and pairs i, j may occur twice."""
        assert self.linear is not None
        given, (rows, j, signs, multipliers) = self.linear.at_most, products
        A, b = given.coefficients[rows], (given.right + 4.0 * given.slack)[rows]
        of, i, a, is_product = np.repeat(np.arange(len(rows)), np.diff(A.indptr)), A.indices, A.data, j != self.anchor
        is_pair = is_product[of] & (i != j[of])
        constant = np.bincount(of[i == j[of]], (signs[of] * a)[i == j[of]], len(rows))
        owner = np.concatenate([of, np.flatnonzero(is_product), of[is_pair]])
        first = np.concatenate([np.full(len(of) + int(is_product.sum()), self.anchor), i[is_pair]])
        second = np.concatenate([i, j[is_product], j[of[is_pair]]])
        coefficients = np.concatenate([a, (signs * b)[is_product], -(signs[of] * a)[is_pair]])
        order, ends = np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=len(rows)))
        first, second = (part(first, second)[order].astype(np.int64) for part in (np.minimum, np.maximum))
        right = np.nextafter(b + constant, np.inf)
        return Rows(np.full(len(rows), PRODUCT), ends, first, second, coefficients[order], right, multipliers)

    def lower_bound(self, dual: LabelDual) -> float:
        """Return a certified lower bound on Eq. (9) over all signs; -infinity if the multipliers prove none."""
        M, error, total = self.dual_matrix(dual)
        if self.least == 0.0 or not has_cholesky(M):
            return -np.inf
        error += factorization_error(M)
        error = error * (len(dual.mu) + 1.0 / self.least) * (1.0 + relative(16))
        bound = float(1.0 - total - error - 4.0 * UNIT_ROUNDOFF * (1.0 + abs(total) + error))
        return bound if np.isfinite(bound) else -np.inf  # NaN if sums of multipliers overflow

    def dual_matrix(self, dual: LabelDual) -> tuple[Array, float, float]:
        """Return M, a bound on the norm of its error, and an upper bound on sum mu + sum_k g_k r_k."""
        (mu, rows, C, products, equal, sets, floors), (m, d), error = dual, self.B.shape, self.error
        given = [rows, products and self.product_rows(products), sets and sets.rows(self.n_clusters)]
        rows = join_rows(*(part for part in given if part is not None)) if any(given) else None
        total, size, n_terms = float(np.sum(mu)), float(np.abs(mu).sum()), m + 32
        M = np.zeros((m + d, m + d))
        if rows is not None:
            lengths, places = np.diff(rows.ends, prepend=0), rows.first * m + rows.second
            halves = 0.5 * np.repeat(rows.multipliers, lengths)
            T = np.bincount(places, rows.coefficients * halves, m * m).reshape(m, m)
            sums, most = (
                np.bincount(places, np.abs(rows.coefficients) * halves, m * m),
                np.bincount(places).max(initial=0),
            )
            error += 2.0 * relative(int(most) + 16) * float(np.linalg.norm(sums))
            M[:m, :m] = T + T.T
            total += float(rows.right @ rows.multipliers)
            size, n_terms = size + float(np.abs(rows.right) @ rows.multipliers), n_terms + len(rows.right)
        if floors is not None:
            N, f = np.triu(floors, 1), 1.0 / (self.n_clusters - 1.0)
            M[:m, :m] -= 0.5 * (N + N.T)
            total += f * float(np.sum(N))
            size, n_terms = size + f * float(np.sum(N)), n_terms + m**2
        if equal is not None and self.linear is not None:
            E = self.equations
            pairs, size_E = E.T @ equal, float(np.linalg.norm(E)) * float(np.linalg.norm(equal))
            M[:m, :m] += pairs + pairs.T
            error += 2.0 * relative(len(E) + 16) * size_E
            total += 16.0 * float(self.linear.equal.slack @ np.abs(equal).sum(axis=1))
        M[:m, :m] -= (1.0 - self.nu) * np.outer(self.w, self.w)
        M[np.arange(m), np.arange(m)] += mu
        M[:m, m:], M[m:, :m], M[m:, m:] = self.B, self.B.T, self.A + np.diag(self.c**2 * (1.0 - 8 * UNIT_ROUNDOFF))
        if C is not None:
            M[m:, m:] += C[np.ix_(self.columns, self.columns)] * np.outer(self.scale, self.scale)
        return M, error + relative(16) * float(np.linalg.norm(M)), total + 4.0 * relative(n_terms) * size


def centering_errors(X: Array) -> Array:
    """Return bounds on the errors of centred entries, (d,): n + 8 roundings of the largest entry of the column."""
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
