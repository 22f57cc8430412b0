"""Check that all certified bounds of an instance are consistent, and that skipped runs would indeed fail."""

import pandas as pd

from diffrac_cvx.problem.formatting import format_ends
from experiments.benchmark.cells import TIMES
from experiments.benchmark.methods import FAILED
from experiments.harness import Outcome

SLACK = 1e-8  # for rounding errors of the solvers and the digits of the table


def check_brackets(table: pd.DataFrame) -> Outcome:
    """Count the certified bounds, and check that those of one instance are consistent: otherwise one is wrong."""
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
                f"CONFLICT on {name}: {' '.join(lowers.idxmax())} is {lower}, {' '.join(uppers.idxmin())} is {upper}"
            )
    lines += [f"{method} is not run on {larger}, but solves {smaller}" for method, larger, smaller in mistaken(table)]
    judged = int(table["judged_upper"].notna().sum())
    words = "all are consistent" if apart <= SLACK else "some contradict each other"
    first = f"{count} brackets, {judged} by the judge, on {table['instance'].nunique()} instances: {words}"
    return Outcome("\n".join([first, *lines]), not lines)


def mistaken(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return runs skipped because of a failure on a smaller instance that did not fail: method and both instances."""
    times = table.set_index(["method", "instance"])[TIMES[0]]
    skipped = ((method, larger, smaller) for (method, larger), smaller in FAILED.items() if (method, larger) in times)
    return [entry for entry in skipped if times.get((entry[0], entry[2]), default=0.0) >= 0.0]
