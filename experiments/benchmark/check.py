"""Whether all proved brackets of an instance meet: the solvers' own, and the judge's of every answer."""

import pandas as pd

from experiments.harness import Verdict

SLACK = 1e-8  # of rounding, in the solvers and in the digits of the table


def check_brackets(table: pd.DataFrame) -> Verdict:
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
            lines.append(
                f"APART on {name}: {' '.join(lowers.idxmax())} is {lowers.max():.9g}, "
                f"{' '.join(uppers.idxmin())} is {uppers.min():.9g}"
            )
    judged = int(table["judged_upper"].notna().sum())
    words = "all meet" if not lines else "some do not meet"
    first = f"{count} brackets, {judged} of them the judge's, on {table['instance'].nunique()} instances: {words}"
    return Verdict("\n".join([first, *lines]), not lines)
