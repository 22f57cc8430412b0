"""Whether all proved brackets of an instance meet, the solvers' and the judge's, and whether what was not run fails."""

import pandas as pd

from diffrac_cvx.problem.formatting import format_ends
from experiments.benchmark.cells import TIMES
from experiments.benchmark.methods import FAILED
from experiments.harness import Outcome

SLACK = 1e-8  # of rounding, in the solvers and in the digits of the table


def check_brackets(table: pd.DataFrame) -> Outcome:
    """Say how many brackets there are and whether two of one instance lie apart: then one of them is wrong."""
    lines, count, apart = [], 0, 0.0
    for name, rows in table.groupby("instance", sort=False):
        uppers = rows.set_index("method")[["own_upper", "judged_upper"]].stack()
        lowers = rows.set_index("method")[["own_lower", "judged_lower"]].stack()
        count += len(lowers)
        if lowers.empty:
            continue
        apart = max(apart, float(lowers.max() - uppers.min()))
        if lowers.max() > uppers.min() + SLACK:
            lower, upper = format_ends(lowers.max(), uppers.min())
            lines.append(
                f"APART on {name}: {' '.join(lowers.idxmax())} is {lower}, {' '.join(uppers.idxmin())} is {upper}"
            )
    lines += [
        f"{method} is not run on {larger}, but gets there on {smaller}" for method, larger, smaller in mistaken(table)
    ]
    judged = int(table["judged_upper"].notna().sum())
    words = "all meet" if apart <= SLACK else "some do not meet"
    first = f"{count} brackets, {judged} of them the judge's, on {table['instance'].nunique()} instances: {words}"
    return Outcome("\n".join([first, *lines]), not lines)


def mistaken(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return what was not run for a failure on a smaller instance that is none: the method, and both instances."""
    times = table.set_index(["method", "instance"])[TIMES[0]]
    skipped = ((method, larger, smaller) for (method, larger), smaller in FAILED.items() if (method, larger) in times)
    return [entry for entry in skipped if times.get((entry[0], entry[2]), default=0.0) >= 0.0]
