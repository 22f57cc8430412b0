"""Speed and memory of the fast solvers, as ratios to the CVXPY oracle in the same run (medians).

Run ``make benchmark``.  One thread each; the oracle's time includes CVXPY's compilation, its solver runs at the loosest
tolerances that prove the gap.
"""

import argparse
import statistics
from collections.abc import Callable
from typing import Any

from threadpoolctl import threadpool_limits

import diffrac_cvx as dc

N, D, LAM, NOISE = 1000, 50, 0.01, 0.3
LARGE_N, LARGE_LAM = 100_000, 0.001
PUBLISHED_LIMIT = 60.0  # seconds


def time_solvers(solvers: dict[str, Callable[[], dc.Result]], repeats: int) -> dict[str, tuple[float, dc.Result]]:
    """Return the median seconds and the last result of each solver, run in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in solvers}
    results = {}
    for _ in range(repeats):
        for name, solver in solvers.items():
            results[name] = solver()
            seconds[name].append(results[name].seconds)
    return {name: (statistics.median(seconds[name]), results[name]) for name in solvers}


def print_speed(repeats: int) -> None:
    """Print the times and ratios of the comparison instance."""
    X = dc.datasets.make_planted(N, D, noise=NOISE, rng=0).X
    penalty = dc.Penalty.l1(LAM)

    def oracle(solver: str, **options: Any) -> dc.Result:
        # Built anew each time: compilation counts.
        return dc.solve(dc.v_space(X, 1.0, penalty), solver, **options)

    loose = {"eps_abs": 1e-4, "eps_rel": 1e-4}
    found = time_solvers(
        {
            "CVXPY + SCS": lambda: oracle("SCS", **loose),
            "low_rank, gap 1e-4": lambda: dc.low_rank(X, 1.0, penalty, tol=1e-4),
            "fista, gap 1e-3": lambda: dc.fista(X, 1.0, penalty, tol=1e-3),
        },
        repeats,
    )
    found |= time_solvers(
        {
            "CVXPY + CLARABEL": lambda: oracle("CLARABEL", tol=1e-2),
            "fista published, gap 1e-3": lambda: dc.fista(
                X, 1.0, penalty, variant="published", tol=1e-3, max_iter=10**6, time_limit=PUBLISHED_LIMIT
            ),
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


def print_memory() -> None:
    """Print the peak memory of each fast solver on one large instance, in a process of its own."""
    X = dc.datasets.make_planted(LARGE_N, D, noise=NOISE, rng=0).X
    print(f"n = {LARGE_N}, d = {D}, lambda = {LARGE_LAM}; data {X.nbytes / 1e9:.2f} GB, peak beside them:", flush=True)
    found = dc.compare(X, methods=("low_rank", "fista"), penalty=dc.Penalty.l1(LARGE_LAM), tol=1e-3, memory=True)
    for row in found.rows:
        print(
            f"  {row['method']:10s}{row['seconds']:7.1f} s   proved gap {row['gap']:.1e}   "
            f"peak {row['memory_MB'] / 1e3:.2f} GB"
        )


def main() -> None:
    """Print the speed ratios and the peak memory of each fast solver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    values = parser.parse_args()
    with threadpool_limits(1):
        print_speed(values.repeats)
        print_memory()


if __name__ == "__main__":
    main()
