"""Rival at lambda = 0: Burer and Monteiro's factorisation of the max-cut form, by pymanopt's trust regions."""

import time
from importlib.util import find_spec

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.typing import Array

INSTALLED = find_spec("pymanopt") is not None
HOW_TO_INSTALL = "pymanopt is not installed, so the max-cut curve is skipped. Run pip install pymanopt to include it."


def solve_max_cut(X: Array, gradient_norm: float, time_limit: float, seed: int) -> Result:
    r"""Minimise 1 - tr F'HF / n over the rows of F on the sphere: Eq. (8) at nu = 1, Y = FF'.

    A solution has rank at most min(d, sqrt(2n)); with one more column there are generically no spurious local minima.
    """
    import pymanopt

    started = time.perf_counter()
    basis = column_basis(as_data(X))
    n = len(basis)
    rank = min(basis.shape[1], int(np.ceil((2 * n) ** 0.5))) + 1
    sphere = pymanopt.manifolds.Oblique(rank, n)

    @pymanopt.function.numpy(sphere)
    def cost(G: Array) -> float:
        return float(1 - np.sum((G @ basis) ** 2) / n)

    @pymanopt.function.numpy(sphere)
    def gradient(G: Array) -> Array:
        return -2 / n * (G @ basis) @ basis.T

    @pymanopt.function.numpy(sphere)
    def hessian(_: Array, D: Array) -> Array:
        return -2 / n * (D @ basis) @ basis.T

    problem = pymanopt.Problem(sphere, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    trust_regions = pymanopt.optimizers.TrustRegions(
        min_gradient_norm=gradient_norm, max_time=time_limit, max_iterations=1000, verbosity=0
    )
    start = np.random.default_rng(seed).standard_normal((rank, n))
    found = trust_regions.run(problem, initial_point=start / np.linalg.norm(start, axis=0))
    F = np.ascontiguousarray(found.point.T)
    lower, upper = dc.certify_y(X, F, nu=1.0)
    seconds = time.perf_counter() - started
    status = Status.TIME_LIMIT if seconds >= time_limit else Status.OPTIMAL
    return Result(
        value=upper, lower=lower, upper=upper, factor=F, status=status, n_iter=found.iterations, seconds=seconds,
        solver="pymanopt",
    )  # fmt: skip
