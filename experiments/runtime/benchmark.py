"""Speed and memory of the fast solvers, as ratios to the CVXPY oracle in the same run (medians).

Run ``make benchmark``.  One thread each; the oracle's time includes CVXPY's compilation, its solver runs at the loosest
tolerances that prove the asked gap.
"""

import argparse
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

import diffrac_cvx as dc

N, D, LAM, NOISE = 1000, 50, 0.01, 0.3
LARGE_N = 100_000
PUBLISHED_LIMIT = 60.0  # seconds


def timed(solvers: dict[str, Callable[[], dc.Result]], repeats: int) -> dict[str, tuple[float, dc.Result]]:
    """Return the median seconds and the last result of each solver, run in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in solvers}
    results = {}
    for _ in range(repeats):
        for name, solver in solvers.items():
            results[name] = solver()
            seconds[name].append(results[name].seconds)
    return {name: (statistics.median(seconds[name]), results[name]) for name in solvers}


def speed(repeats: int) -> None:
    """Print the times and ratios of the comparison instance."""
    X = dc.datasets.make_planted(N, D, noise=NOISE, rng=0).X
    penalty = dc.Penalty.l1(LAM)

    def oracle(solver: str, **options: Any) -> dc.Result:
        # Built anew each time: compilation counts.
        return dc.solve(dc.v_space(X, 1.0, penalty), solver, **options)

    loose = {"eps_abs": 1e-4, "eps_rel": 1e-4}
    found = timed(
        {
            "CVXPY + SCS": lambda: oracle("SCS", **loose),
            "low_rank, gap 1e-4": lambda: dc.low_rank(X, 1.0, penalty, tol=1e-4),
            "fista, gap 1e-3": lambda: dc.fista(X, 1.0, penalty, tol=1e-3),
        },
        repeats,
    )
    found |= timed({"CVXPY + CLARABEL": lambda: oracle("CLARABEL", tol=1e-2)}, 1)
    found |= timed(
        {
            "fista published, gap 1e-3": lambda: dc.fista(
                X, 1.0, penalty, variant="published", tol=1e-3, max_iter=10**6, time_limit=PUBLISHED_LIMIT
            )
        },
        1,
    )
    print(f"n = {N}, d = {D}, lambda = {LAM}, noise {NOISE}; medians of {repeats} (CLARABEL and published: one run)")
    for name, (median, result) in found.items():
        print(f"  {name:28s}{median:9.3f} s   proved gap {result.gap:.1e}   {result.n_iter} iterations")
    best = min(found["CVXPY + SCS"][0], found["CVXPY + CLARABEL"][0])
    fista = found["fista, gap 1e-3"][0]
    print(f"  low_rank is {best / found['low_rank, gap 1e-4'][0]:.0f} times faster than the better oracle")
    print(f"  fista is {best / fista:.0f} times faster than the better oracle")
    print(f"  fista is {found['fista published, gap 1e-3'][0] / fista:.0f} times faster than as published")


def memory(name: str) -> None:
    """Solve one large instance and print the peak memory of this process."""
    X = dc.datasets.make_planted(LARGE_N, D, noise=NOISE, scaling="unit", rng=0).X
    penalty = dc.Penalty.l1(0.001)
    solve = {"low_rank": partial(dc.low_rank, tol=1e-3), "fista": partial(dc.fista, tol=1e-3)}[name]
    result = solve(X, 1.0, penalty)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"  {name:10s}{result.seconds:7.1f} s   proved gap {result.gap:.1e}   "
        f"peak {peak:.2f} GB, data {X.nbytes / 1e9:.2f} GB"
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the speed ratios and the peak memory of each fast solver in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory-of", choices=("low_rank", "fista"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    with threadpool_limits(1):
        if chosen.memory_of:
            memory(chosen.memory_of)
            return 0
        speed(chosen.repeats)
    print(f"n = {LARGE_N}, d = {D}, lambda = 0.001", flush=True)
    for name in ("low_rank", "fista"):
        subprocess.run([sys.executable, "-m", "experiments.runtime.benchmark", "--memory-of", name], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
