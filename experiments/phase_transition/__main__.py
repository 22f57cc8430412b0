"""Figure 1: phase transitions of the rank and of the clustering error, with the oracle's word on a sample.

Run ``make phase-transition``; ``GRID=smoke`` for a small one, ``SOLVER=reference`` to do everything by CVXPY.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

from experiments.harness.sweep import finish, sweep, write_table
from experiments.phase_transition.cells import (
    AMBIGUOUS,
    GRIDS,
    MAX_ITER,
    MOST_POINTS,
    RANK_ONE,
    TOLERANCES,
    cells_of,
    measure_fast,
    measure_reference,
    sample_of,
)
from experiments.phase_transition.plot import draw

VALUE_SLACK = 1e-9  # of rounding, beyond the two proved brackets
ERROR_SLACK = 0.0  # two rank-one solutions must round to the same error


def agreement(fast: pd.DataFrame, oracle: pd.DataFrame) -> pd.DataFrame:
    """Compare the oracle's cells with the fast ones, one row each."""
    keys = ["panel", "n", "d", "replication"]
    both = oracle.merge(fast, on=keys, suffixes=("_oracle", "_fast"), validate="one_to_one")
    below, above = both["lower_fast"] - both["value_oracle"], both["lower_oracle"] - both["upper_fast"]
    outside = pd.concat([below, above], axis=1).max(axis=1)
    ratios = both[["eigenvalue_ratio_oracle", "eigenvalue_ratio_fast"]]
    clear = ((ratios < AMBIGUOUS[0]) | (ratios > AMBIGUOUS[1])).all(axis=1)
    clear |= (both["verdict_fast"] == "uniqueness") & ~both["eigenvalue_ratio_oracle"].between(*AMBIGUOUS)
    sharp = (both["rank_one_fast"] == 1) & (both["rank_one_oracle"] == 1)
    return pd.DataFrame(
        {
            **{key: both[key] for key in keys},
            "value_oracle": both["value_oracle"],
            "gap_oracle": both["gap_oracle"],
            "lower_fast": both["lower_fast"],
            "upper_fast": both["upper_fast"],
            "value_agrees": (outside <= VALUE_SLACK).astype(int),
            "ratio_oracle": both["eigenvalue_ratio_oracle"],
            "ratio_fast": both["eigenvalue_ratio_fast"],
            "rank_one_oracle": both["rank_one_oracle"],
            "rank_one_fast": both["rank_one_fast"],
            "ambiguous": (~clear).astype(int),
            "rank_agrees": (both["rank_one_oracle"] == both["rank_one_fast"]).astype(int),
            "error_oracle": both["error_oracle"],
            "error_fast": both["error_fast"],
            "error_compared": sharp.astype(int),
            "error_agrees": ((both["error_oracle"] - both["error_fast"]).abs() <= ERROR_SLACK).astype(int),
        }
    )


def verdict(found: pd.DataFrame) -> bool:
    """Print how far the oracle and the fast path agree; return whether they do."""
    clear, sharp = found[found["ambiguous"] == 0], found[found["error_compared"] == 1]
    rest = found[found["error_compared"] == 0]
    print(f"oracle on {len(found)} cells:")
    print(f"  value inside the proved bracket  {found['value_agrees'].sum()} of {len(found)}")
    print(
        f"  same rank-one verdict            {clear['rank_agrees'].sum()} of {len(clear)}; {len(found) - len(clear)} "
        f"with an eigenvalue ratio in [{AMBIGUOUS[0]:g}, {AMBIGUOUS[1]:g}] not counted"
    )
    print(f"  same error, both rank one        {sharp['error_agrees'].sum()} of {len(sharp)}")
    gap = (rest["error_oracle"] - rest["error_fast"]).abs()
    if len(rest):
        print(
            f"  error elsewhere (the optimum is flat or not unique): median difference {gap.median():.3f}, "
            f"largest {gap.max():.3f}"
        )
    ok = bool(found["value_agrees"].all() and clear["rank_agrees"].all() and sharp["error_agrees"].all())
    if not ok:
        bad = found[
            (found["value_agrees"] == 0)
            | ((found["ambiguous"] == 0) & (found["rank_agrees"] == 0))
            | ((found["error_compared"] == 1) & (found["error_agrees"] == 0))
        ]
        print("DISAGREEMENT:\n" + bad.to_string(index=False))
    return ok


def main(arguments: list[str] | None = None) -> int:
    """Run the sweep, compare with the oracle, write the tables, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", choices=sorted(GRIDS), default="full")
    parser.add_argument("--solver", choices=("fast", "reference"), default="fast")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder of the results; figures, or build for a smoke run")
    chosen = parser.parse_args(arguments)
    out = chosen.out or Path("figures" if chosen.grid == "full" else "build")
    name = "phase_transition" if chosen.solver == "fast" else "phase_transition_reference"
    settings = {
        "grid": chosen.grid,
        "tolerances": TOLERANCES,
        "max_iter": MAX_ITER,
        "most_points": MOST_POINTS,
        "direction": "of the cell",
        "rank_one": RANK_ONE,
    }
    log = Path("build") / f"{name}_{chosen.grid}.log"
    measure = measure_fast if chosen.solver == "fast" else measure_reference
    table = sweep(cells_of(chosen.grid), measure, log, jobs=chosen.jobs, settings=settings, title=name)
    write_table(table, out / f"{name}.csv")
    ok = True
    if chosen.solver == "fast":
        oracle_log = Path("build") / f"{name}_{chosen.grid}_oracle.log"
        oracle = sweep(
            sample_of(chosen.grid), measure_reference, oracle_log, jobs=chosen.jobs, settings=settings, title="oracle"
        )
        found = agreement(table, oracle)
        write_table(found, out / f"{name}_agreement.csv")
        ok = verdict(found)
        finish(oracle_log)
    draw(pd.read_csv(out / f"{name}.csv"), out / name)
    finish(log)
    print(f"wrote {out / name}.csv, .pdf and .png")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
