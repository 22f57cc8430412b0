"""V on a sparsity pattern: a primal-dual interior point whose unknowns are the diagonal of V and a few signed pairs.

If V is nearly diagonal but of full rank, the pattern has far fewer unknowns than a factor of V, and Newton's method
needs a few dozen steps.  The points are certified as for V in one block.
"""

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.memory import available_memory
from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import LARGE_SIZE, cholesky, inverse_triangular, times
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart
from diffrac_cvx.solvers.factored.augmented_lagrangian import refine_point
from diffrac_cvx.solvers.race import Pause, Steps

MAX_PAIRS = 4  # signed pairs per coordinate, above which V as one block is faster
TO_BOUNDARY = 0.95  # fraction of the longest feasible step


def is_pattern_applicable(problem: DirectionProblem, warm_start: WarmStart) -> bool:
    """Return whether V on a pattern applies: an elementwise l1 penalty, rows in memory, d <= n, and a cold start.

    Up to three coordinates may have no l1 weight; all entries of V in their rows are unknowns.
    """
    n, d = problem.X.shape
    is_l1 = problem.X.in_memory and problem.has_l1 and problem.pair_penalty.splits_into_blocks
    most = (MAX_PAIRS + 1) * d  # unknowns
    is_small = d <= min(n, LARGE_SIZE) and 8.0 * most * (2 * n + 6 * most) <= available_memory()
    if not (is_l1 and is_small and np.sum(problem.c == 0.0) <= 3 and warm_start.U is None):
        return False
    return bool(np.all(problem.Y.mean_squares() + problem.a**2 + problem.c**2 > 0.0))


def pattern_iterates(
    problem: DirectionProblem,
    warm_start: WarmStart,  # noqa: ARG001  # empty, see `is_pattern_applicable`
    stopping: Stopping,
) -> Steps:
    r"""Yield certified iterates, and before each step its operations; end if the pattern has too many pairs.

    V has the entries w_e s_e on a pattern: its diagonal, few pairs (j, k) with signs s_e, and all entries of the
    coordinates with c = 0, whose sign is free.  A pair is in the pattern with one sign, rarely with both.  On the
    pattern the problem is smooth except for two constraints, V >= 0 and w_e >= 0 on the signed pairs P, which are
    replaced by barriers:

    .. math::
        1 - \tfrac2n \sum_i \sqrt{(\Phi w)_i} + h^\top w - \mu \log\det V - \mu \sum_{e \in P} \log w_e

    Let S and z be the multipliers of the two constraints.  At the minimum, the gap is mu times the number of barriers,
    and A + C + Diag(c)^2 - M = S. Off the pattern C = M - A + S; a pair whose |C| exceeds c_j c_k enters.

    A step of Newton's method on m unknowns is O(n m^2 + m^3).
    """
    n, d = problem.X.shape
    yield Pause(float(n) * float(d) ** 2 + 33.0 * float(d) ** 3)  # the start and the first step
    X, A, c = problem.X.array(), problem.A, problem.c
    nonzero = X.any(axis=1)  # zero rows contribute only to the number of rows in means
    X, u_all, q_all = X[nonzero], np.zeros(len(X)), np.zeros(len(X))
    bound, is_free = np.outer(c, c) * problem.pair_penalty.sides, c == 0.0
    entered = np.zeros((2, d, d), dtype=bool)  # pairs that have entered with sign 1, and with sign -1
    entered[:, is_free] = entered[:, :, is_free] = True

    # 1. Start with a diagonal V at its optimal scale; the first target gap is a tenth of the value.
    J, K = (np.append(np.arange(d), free) for free in np.nonzero(np.triu(entered[0], 1)))
    entered[:, np.arange(d), np.arange(d)] = True
    costs = np.diag(A) + c**2
    w, z = np.append(1.0 / costs, np.zeros(len(J) - d)), np.zeros(len(J))
    on = Pattern(problem, X, J, K, np.ones(len(J)))
    w *= (np.sum(np.sqrt(on.Phi @ w)) / n / (on.h @ w)) ** 2
    value = 1.0 - float(np.sum(np.sqrt(on.Phi @ w))) / n
    gap = 0.1 * value
    mu = gap / d
    S = np.asarray(mu * np.linalg.inv(on.matrix(w)), dtype=float)
    upper, lower, steps, n_first = 1.0, 0.0, 0, 0  # the last: violated pairs at the diagonal V

    while steps < stopping.max_iter and gap > 1e-8 * value > 0.0:
        # 2. One step of Newton's method; the curvature of the barriers is that of S and z.
        operations = float(n) * len(w) ** 2 + float(len(w)) ** 3 + 300.0 * len(w) ** 2 + 30.0 * float(d) ** 3
        yield Pause(operations)
        check_deadline(operations)
        count_work(operations)
        steps += 1
        Phi, signed = on.Phi, on.signed
        try:
            L = cholesky(on.matrix(w))
            inverse_L = inverse_triangular(L)
            W, q = times(inverse_L.T, inverse_L), Phi @ w
            gradient, H = on.derivatives(w, W, mu, S, z)
            units = 1.0 / np.sqrt(np.diag(H))
            H *= units[:, None]
            H *= units
            H[np.diag_indices(len(w))] += 1e-12
            step = -units * cho_solve(cho_factor(H, check_finite=False, overwrite_a=True), units * gradient)
            inverse_root = inverse_triangular(cholesky(S))
        except np.linalg.LinAlgError:  # mu is too small for double precision
            return
        dV, dq = on.matrix(step), Phi @ step

        # 3. The multipliers at the full step: z, u = q^-1/2, linearised, and S = mu V^-1 - (V^-1 dV S + S dV V^-1) / 2.
        change = times(times(W, dV), S)
        change = mu * W - (change + change.T) / 2.0 - S
        decrease = -np.linalg.eigvalsh(times(times(inverse_root, change), inverse_root.T))[0]
        new_z = (mu - z[signed] * step[signed]) / w[signed]
        is_dual_feasible = decrease <= 1.0 and np.all(new_z >= 0.0) and np.all(dq < 1.9 * q)
        new_S, u = S + change, (1.0 - dq / (2.0 * q)) / np.sqrt(q)

        # 4. Backtrack from the boundary of the cone and of w >= 0.
        shrinkage = -np.linalg.eigvalsh(times(times(inverse_L, dV), inverse_L.T))[0]
        length = 1.0 / max(1.0, shrinkage / TO_BOUNDARY, np.max(-step[signed] / w[signed], initial=0.0) / TO_BOUNDARY)
        before = on.barrier_value(w, L, mu)
        while True:
            new = w + length * step
            try:
                L = cholesky(on.matrix(new))
                after = on.barrier_value(new, L, mu) if np.all(Phi @ new > 0.0) else np.inf
            except np.linalg.LinAlgError:
                after = np.inf
            if after <= before + 1e-4 * length * (gradient @ step):
                break
            length *= 0.6
            if length < 1e-8:
                return
        w, S = new, S + change / max(1.0, decrease / TO_BOUNDARY)
        z[signed] += (new_z - z[signed]) / max(1.0, np.max(1.0 - new_z / z[signed], initial=0.0) / TO_BOUNDARY)
        if not is_dual_feasible:
            continue

        # 5. Off the pattern, C = M - A + S: find the pairs that exceed c_j c_k by more than the relative gap.
        u_all[nonzero], q_all[nonzero] = u, 1.0 / u**2
        C = problem.X.weighted_gram(u_all) - A + new_S
        value = on.value(w)
        inside = np.where(C > 0.0, *entered)
        excess = np.where(inside, 0.0, np.abs(C) / np.where(inside, 1.0, bound) - 1.0)
        j, k = np.nonzero(np.triu(excess > min(gap / max(value, 1e-300), 0.1), 1))
        n_first = n_first if len(signed) else len(j)
        is_slow = len(signed) * n_first > MAX_PAIRS * d * (n_first - len(j))  # linearly extrapolated, more would enter
        if len(j) > MAX_PAIRS * d and 2 * len(signed) >= d and is_slow:
            return
        if len(signed) >= d and len(signed) + len(j) > 10 * d:  # an upper estimate: not all of them would enter
            return

        # 6. If there are few, certify with these multipliers, at the q that belongs to u, and decrease the target gap.
        if len(j) <= d / 20:
            yield Pause()
            np.fill_diagonal(C, 0.0)
            C = np.clip(C, -bound, bound)
            point, dual, proved = refine_point(problem, L, C, q=q_all.copy())
            if proved is not None:
                upper, lower = min(upper, point.value), max(lower, proved.lower)
            yield Iterate(point.U, steps, dual, point, proved)
            if stopping.is_met(lower, upper):
                return
            gap, mu = 0.15 * gap, 0.15 * mu

        # 7. The most violated pairs enter, each at its univariate minimum, but inside the cone.
        if len(j):
            most = np.argsort(-excess[j, k], kind="stable")[: max(d, len(signed)) // 2]
            j, k = j[most], k[most]
            if len(signed) + len(j) > MAX_PAIRS * d:
                return
            places = np.append(on.J, j), np.append(on.K, k)
            on = Pattern(problem, X, *places, np.append(on.signs, np.sign(C[j, k])))
            side = (C[j, k] < 0.0).astype(int)
            entered[side, j, k] = entered[side, k, j] = True
            stiffness = np.maximum((u**3) @ (X[:, j] * X[:, k]) ** 2 * (2.0 / n), 1e-300)
            start = np.minimum(2.0 * bound[j, k] * excess[j, k] / stiffness, 0.3 * np.sqrt(w[j] * w[k]))
            while np.linalg.eigvalsh(on.matrix(np.append(w, start)))[0] <= 0.0:
                start *= 0.3
            w, mu = np.append(w, start), gap / (d + len(signed) + len(j))
            z = np.append(z, mu / start)


class Pattern:
    """Entries w_e s_e of V at (J, K), J <= K, with the terms of (15) and of the barriers in the sizes w."""

    def __init__(
        self, problem: DirectionProblem, X: Array, J: npt.NDArray[np.intp], K: npt.NDArray[np.intp], signs: Array
    ) -> None:
        c, self.n, self.J, self.K, self.signs = problem.c, len(problem.X), J, K, signs
        self.copies = signs * np.where(J == K, 1.0, 2.0)  # dV/dw: twice the sign off the diagonal
        self.Phi = X[:, J] * X[:, K] * self.copies  # q = Phi w
        widths = problem.pair_penalty.half_widths(J, K) * (c[J] * c[K])
        self.h = self.copies * problem.A[J, K] + np.abs(self.copies) * widths  # tr V(A + C) = h'w
        self.signed = np.flatnonzero((J != K) & (c[J] > 0.0) & (c[K] > 0.0))
        self.d = len(c)

    def matrix(self, sizes: Array) -> Array:
        """Return the symmetric matrix with entries of these sizes."""
        V = np.bincount(self.J * self.d + self.K, self.signs * sizes, self.d**2).reshape(self.d, self.d)
        return np.asarray(V + np.triu(V, 1).T)

    def value(self, w: Array) -> float:
        """Return the objective of (15)."""
        return float(1.0 - 2.0 * np.sum(np.sqrt(self.Phi @ w)) / self.n + self.h @ w)

    def barrier_value(self, w: Array, L: Array, mu: float) -> float:
        """Return the objective with both barriers, from the Cholesky factor L of V."""
        return self.value(w) - mu * float(2.0 * np.sum(np.log(np.diag(L))) + np.sum(np.log(w[self.signed])))

    def derivatives(self, w: Array, W: Array, mu: float, S: Array, z: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian of `barrier_value`, W = V^-1, with the curvature of the barriers from S and z.

        For E_e = dV/dw_e the curvature of -mu log det V, mu tr W E_e W E_f, becomes half of tr W E_e S E_f plus half of
        tr S E_e W E_f, from products of entries of W and S.  At S = mu W and z = mu / w the Hessian is exact.
        """
        J, K, signed = self.J, self.K, self.signed
        u = 1.0 / np.sqrt(self.Phi @ w)
        gradient = self.h - self.Phi.T @ u / self.n - mu * self.copies * W[J, K]
        gradient[signed] -= mu / w[signed]
        rows = self.Phi * (u**1.5 / (2.0 * self.n) ** 0.5)[:, None]
        H = rows.T @ rows  # symmetric, at half the cost of a product of two matrices
        pairs = ((J, J), (K, K)), ((K, K), (J, J)), ((J, K), (K, J)), ((K, J), (J, K))  # in W, and in S
        products = sum(W[np.ix_(*of_W)] * S[np.ix_(*of_S)] for of_W, of_S in pairs)
        H += products * np.outer(self.copies / 4.0, self.copies)
        H[signed, signed] += z[signed] / w[signed]
        return gradient, H
