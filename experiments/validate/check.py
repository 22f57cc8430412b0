"""Whether all brackets of every instance meet, and the code that solves an instance again where they do not."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.harness.command import Outcome
from experiments.validate.cells import METHODS, RELATED, instance

KEYS = ["n", "d", "nu", "penalty", "trait"]
REPRODUCERS = Path("build")


def check_brackets(table: pd.DataFrame) -> Outcome:
    """Say how tight each method is, and save a reproducer for every instance whose brackets lie apart."""
    wrong = table[table["agrees"] == 0]
    lines = [
        summarize(table).to_string(index=False, float_format=lambda number: f"{number:.1e}"),
        f"{len(table) - len(wrong)} of {len(table)} instances agree: every oracle value in every fast bracket",
    ]
    for _, row in wrong.iterrows():
        script = save_reproducer(row, REPRODUCERS)
        lines.append(f"APART by {row['violation']:.3g} ({row['between']}): python {script}")
    return Outcome("\n".join(lines), wrong.empty)


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """Return one line a method: how many instances, and the quantiles of its certified gap."""
    rows = []
    for name in (*METHODS, *RELATED):
        gaps = table.get(f"{name} gap", pd.Series(dtype=float)).dropna()
        if len(gaps):
            rows.append([name, len(gaps), gaps.median(), gaps.quantile(0.9), gaps.max()])
    return pd.DataFrame(rows, columns=["method", "instances", "median gap", "90 % gap", "largest gap"])


def save_reproducer(row: pd.Series, folder: Path) -> Path:
    """Write the data of an instance and the lines that solve it again."""
    key = {name: row[name] for name in KEYS}
    X, penalty = instance(int(key["n"]), int(key["d"]), float(key["nu"]), str(key["penalty"]), str(key["trait"]))
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / "_".join(re.sub(r"[^\w.-]", "-", str(value)) for value in key.values())
    a, c = penalty.weights(X.shape[1])
    says = f"{row['between']}: apart by {row['violation']:.3g}."
    np.savez(stem.with_suffix(".npz"), X=X, a=a, c=c, nu=key["nu"])
    stem.with_suffix(".py").write_text(
        f"{says!r}\n"
        "from pathlib import Path\n\nimport numpy as np\n\nimport diffrac_cvx as dc\n\n"
        'data = np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False)\n'
        'X, nu, penalty = data["X"], float(data["nu"]), dc.Penalty(data["a"], data["c"])\n'
        'print(dc.solve(dc.v_space(X, nu, penalty), "CLARABEL"))\n'
        'print(dc.solve(dc.v_space(X, nu, penalty), "SCS"))\n'
        "print(dc.low_rank(X, nu, penalty, tol=1e-6))\nprint(dc.fista(X, nu, penalty, tol=1e-4))\n"
    )
    return stem.with_suffix(".py")
