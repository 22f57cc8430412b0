"""Hold the fast solvers to the SDP oracles over a designed battery; exit 1 and save a reproducer where they part.

Run ``make validate``.
"""

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.harness.style import ACCENT, GREY, PAGE, STYLE, save
from experiments.harness.sweep import finish, sweep, write_table
from experiments.validate.cells import SLACK, battery, instance, measure

KEYS = ["n", "d", "nu", "penalty", "trait"]
METHODS = ["low_rank", "fista", "v_space", "v_space SCS", "lifted", "penalized_nu", "normalized", "constrained_alpha"]


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return one line a method: how many instances, and the quantiles of its certified gap."""
    rows = []
    for method in METHODS:
        gaps = table.get(f"{method} gap", pd.Series(dtype=float)).dropna()
        if len(gaps):
            rows.append([method, len(gaps), gaps.median(), gaps.quantile(0.9), gaps.max()])
    return pd.DataFrame(rows, columns=["method", "instances", "median gap", "90 % gap", "largest gap"])


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the certified gap of every method, and how far inside or outside the brackets are of each other."""
    present = [method for method in METHODS if f"{method} gap" in table]
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(PAGE, 2.6), width_ratios=[1.6, 1])
        gaps = [np.log10(np.maximum(table[f"{method} gap"].dropna(), 1e-16)) for method in present]
        left.boxplot(gaps, orientation="horizontal", tick_labels=present, whis=(0, 100), medianprops={"color": ACCENT})
        left.invert_yaxis()
        left.set_xlabel("certified gap, $\\log_{10}$")
        signed = table["violation"].to_numpy()
        right.hist(np.log10(np.maximum(-signed, 1e-16)), bins=40, color=GREY)
        right.set_xlabel("least overlap of two brackets, $\\log_{10}$")
        right.set_ylabel("instances")
        outside = int(np.sum(signed > SLACK))
        right.text(0.97, 0.95, f"{outside} of {len(signed)} apart", transform=right.transAxes, ha="right", va="top")
        save(figure, stem)


def save_reproducer(row: pd.Series, folder: Path) -> Path:
    """Write the data of an instance and the lines that solve it again."""
    key = {name: row[name] for name in KEYS}
    X, penalty = instance(int(key["n"]), int(key["d"]), float(key["nu"]), str(key["penalty"]), str(key["trait"]))
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / "_".join(str(value).replace(" ", "-") for value in key.values())
    a, c = penalty.weights(X.shape[1])
    np.savez(stem.with_suffix(".npz"), X=X, a=a, c=c, nu=key["nu"])
    stem.with_suffix(".py").write_text(
        f'"""{row["between"]}: apart by {row["violation"]:.3g}."""\n'
        "from pathlib import Path\n\nimport numpy as np\n\nimport diffrac_cvx as dc\n\n"
        'data = np.load(Path(__file__).with_suffix(".npz"))\n'
        'X, nu, penalty = data["X"], float(data["nu"]), dc.Penalty(data["a"], data["c"])\n'
        'print(dc.solve(dc.v_space(X, nu, penalty), "CLARABEL"))\n'
        'print(dc.solve(dc.v_space(X, nu, penalty), "SCS"))\n'
        "print(dc.low_rank(X, nu, penalty, tol=1e-6))\nprint(dc.fista(X, nu, penalty, tol=1e-4))\n"
    )
    return stem.with_suffix(".py")


def main(arguments: list[str] | None = None) -> int:
    """Run the battery, print and write its table, draw it, and report every disagreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", choices=("full", "smoke"), default="full")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder of the results; figures, or build for a smoke run")
    chosen = parser.parse_args(arguments)
    out = chosen.out or Path("figures" if chosen.grid == "full" else "build")
    log = Path("build") / f"validation_{chosen.grid}.log"
    cells = battery(chosen.grid)
    table = sweep(cells, measure, log, jobs=chosen.jobs, settings={"grid": chosen.grid}, title="validate")
    write_table(table, out / "validation.csv")
    draw(table, out / "validation")
    finish(log)
    print(summary(table).to_string(index=False, float_format=lambda number: f"{number:.1e}"))
    bad = table[table["agrees"] == 0]
    print(f"{len(table) - len(bad)} of {len(table)} instances agree: every oracle value in every fast bracket")
    for _, row in bad.iterrows():
        print(f"APART by {row['violation']:.3g} ({row['between']}): python {save_reproducer(row, Path('build'))}")
    return 1 if len(bad) else 0


if __name__ == "__main__":
    sys.exit(main())
