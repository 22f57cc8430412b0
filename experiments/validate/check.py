"""Check that all bounds of every instance are consistent; write a script that solves inconsistent instances again."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.harness.command import Outcome
from experiments.validate.cells import METHODS, RELATED, instance

KEYS = ["n", "d", "nu", "penalty", "trait"]
REPRODUCERS = Path("build")


def check_brackets(table: pd.DataFrame) -> Outcome:
    """Report how tight each method is, and save a reproducer for every instance with inconsistent bounds."""
    wrong = table[table["agrees"] == 0]
    lines = [
        summarize(table).to_string(index=False, float_format=format_upper),
        f"{len(table) - len(wrong)} of {len(table)} instances agree: oracle values within the bounds of fast solvers",
    ]
    for _, row in wrong.iterrows():
        script = save_reproducer(row, REPRODUCERS)
        lines.append(f"APART by {row['violation']:.3g} ({row['between']}): python {script}")
    return Outcome("\n".join(lines), wrong.empty)


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """Return one line per method: number of instances, and quantiles of its certified gap."""
    rows = []
    for name in (*METHODS, *RELATED):
        gaps = table.get(f"{name} gap", pd.Series(dtype=float)).dropna()
        if len(gaps):
            rows.append([name, len(gaps), gaps.median(), gaps.quantile(0.9), gaps.max()])
    return pd.DataFrame(rows, columns=["method", "instances", "median gap", "90 % gap", "largest gap"])


def save_reproducer(row: pd.Series, folder: Path) -> Path:
    """Write the data of an instance and a script that solves it again."""
    key = {name: row[name] for name in KEYS}
    X, penalty = instance(int(key["n"]), int(key["d"]), float(key["nu"]), str(key["penalty"]), str(key["trait"]))
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / "_".join(re.sub(r"[^\w.-]", "-", str(value)) for value in key.values())
    a, c = penalty.weights(X.shape[1])
    message = f"{row['between']}: apart by {row['violation']:.3g}."
    np.savez(stem.with_suffix(".npz"), X=X, a=a, c=c, nu=key["nu"])
    stem.with_suffix(".py").write_text(
        f"{message!r}\n"
        "from pathlib import Path\n\nimport numpy as np\n\nimport diffrac_cvx as dc\n\n"
        'data = np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False)\n'
        'X, nu, penalty = data["X"], float(data["nu"]), dc.Penalty(data["a"], data["c"])\n'
        'print(dc.solve(dc.v_space(X, nu, penalty), "CLARABEL"))\n'
        'print(dc.solve(dc.v_space(X, nu, penalty), "SCS"))\n'
        "print(dc.low_rank(X, nu, penalty, tol=1e-6))\nprint(dc.fista(X, nu, penalty, tol=1e-4))\n"
    )
    return stem.with_suffix(".py")
