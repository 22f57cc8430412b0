"""Findings of `make optimal`, each with its rule and the verdict of the rule."""

import numpy as np
import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.harness import Finding, Outcome, judge
from experiments.harness.beyond import MIN_ROWS, of_most, ruled
from experiments.harness.intervals import percent, proportion_of
from experiments.optimal.cells import REACHED, RESTARTS, TOL
from experiments.optimal.instances import RIDGE_OF_LARGE

TITLE = "Certified optimal labels, and how close the relaxation comes to them"
ABOUT = (
    f"`optimal_labels` to a gap of {TOL:g} at nu = 1 on standardised columns: real sets at ridges of 1, 0.3, 0.1 and 0 (dna, a1a and "
    f"w1a at {RIDGE_OF_LARGE:g} alone), planted labels without a ridge, and small planted instances. The root gap is the gap of the "
    "relaxation before branching. Compared with all labellings (n up to 20), a mixed-integer linear program by HiGHS (n up to 30), "
    f"all sign patterns of directions (d up to 3) and {RESTARTS} runs of alternation. Seconds of processor time, one thread."
)
SMALL_GAP = 0.05  # at the root
ROUNDING = 1e-9  # between exact methods
EASY = 0.25  # hardness
PROGRAMMED = 20  # fewest points at which the integer program is judged
OTHERS = {"labels": "all labellings", "program": "the integer program", "directions": "all directions"}


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    solved = table[table["solved"] == 1]
    of_all = (proved, small_root, remaining, program, directions)
    return [
        *(find(table) for find in of_all),
        *([cuts(table), hardness(table)] if "hardness" in table else []),
        *(find(solved) for find in (initializations, roundings, improved, nearer, classes)),
    ]


def proved(table: pd.DataFrame) -> Finding:
    """Number of instances solved, and run times."""
    words = []
    for part, rows in table.groupby("part", sort=False):
        solved = rows[rows["solved"] == 1]
        numbers = f"median {solved['seconds'].median():.2g} s, {solved['nodes'].median():.0f} relaxations"
        words.append(f"{part}: {len(solved)} of {len(rows)}" + (f" ({numbers})" if len(solved) else ""))
    return Finding(
        f"labels certified as optimal to {TOL:g} within {limits(table)} seconds of processor time",
        "; ".join(words) + ".",
    )


def cuts(table: pd.DataFrame) -> Finding:
    """What cutting planes add to branch and bound."""
    alone = table["gap of the tree"] <= TOL
    both = alone & (table["solved"] == 1)
    times = (table["seconds"] / table["seconds of the tree"])[both]
    return of_most(
        "with cutting planes, more labels are certified as optimal within the limit, and none fewer",
        table.loc[table["solved"] != alone, "solved"],
        f"{{share}} of the {{count}} instances that one of the two solves; branch and bound alone solves {int(alone.sum())} of "
        f"{len(table)}, with cutting planes {int(table['solved'].sum())}. Where both do, the time is {times.median():.2g} times as long "
        f"(median; at most {times.max():.2g}).",
    )


def hardness(table: pd.DataFrame) -> Finding:
    """How well the hardness predicts which instances are solved."""
    easy = table["hardness"] <= EASY
    hard = table.loc[~easy, "solved"].to_numpy()
    return of_most(
        f"if the hardness is at most {EASY:g}, the labels are certified as optimal within the time limit",
        table.loc[easy, "solved"],
        f"{{share}} of {{count}} instances; of the {len(hard)} with a larger one {percent(proportion_of(hard))}.",
        end=f"; not tested with fewer than {MIN_ROWS}.",
    )


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    """Return one line for each ridge of the real sets, each noise level of the planted ones, and the small ones."""
    kinds = [kind_of(row) for _, row in table.iterrows()]
    rows = []
    for kind, part in table.groupby(kinds, sort=False):
        solved, unsolved = part[part["solved"] == 1], part[part["solved"] == 0]
        medians = {"root_gap": part["root_gap"].median(), "left": unsolved["gap"].median()}
        medians |= {name: solved[name].median() for name in ("seconds", "nodes")}
        rows.append({"kind": kind, "instances": len(part), "solved": len(solved), **medians})
    return pd.DataFrame(rows).sort_values("kind", kind="stable")


def kind_of(row: pd.Series) -> str:
    """Return the label of a line of the table by kinds."""
    if row["part"] == "real":
        return f"real sets, ridge {row['ridge']:g}"
    return f"planted, noise {row['noise']:g}" if row["part"] == "planted" else "planted, up to 30 points"


def limits(table: pd.DataFrame) -> str:
    """Format the time limits of the table."""
    return " or ".join(f"{limit:g}" for limit in sorted(table["limit"].unique(), reverse=True))


def small_root(table: pd.DataFrame) -> Finding:
    """Instances by their root gap."""
    near = table["root_gap"] < SMALL_GAP
    far = table.loc[~near, "solved"].to_numpy()
    return of_most(
        f"if the root gap is below {SMALL_GAP:g}, the labels are certified as optimal within the time limit",
        table.loc[near, "solved"],
        f"{{share}} of {{count}} instances; of the {len(far)} with a larger gap {percent(proportion_of(far))}.",
        "{most} are solved",
        end=f"; not tested with fewer than {MIN_ROWS}.",
    )


def remaining(table: pd.DataFrame) -> Finding:
    """Remaining gap when the time limit was reached."""
    open_ones = table[table["solved"] == 0]
    if open_ones.empty:
        return Finding(
            "fraction of the root gap that remains at the time limit", "The time limit was reached on 0 instances."
        )
    left = open_ones["gap"] / open_ones["root_gap"]
    worst, cheaper = open_ones.loc[open_ones["gap"].idxmax()], open_ones["above restarts"] < -ROUNDING
    return Finding(
        "fraction of the root gap that remains at the time limit",
        f"{100 * left.median():.0f} % in the median of {len(open_ones)} instances, {100 * left.min():.0f} to {100 * left.max():.0f} "
        f"%; the largest gap is that of {name_of(worst)}, {format_upper(worst['gap'])}. {RESTARTS} runs of alternation find labels "
        f"with a lower objective than the search on {int(cheaper.sum())} of them.",
    )


def name_of(row: pd.Series) -> str:
    """Return the description of an instance."""
    if row["part"] == "real":
        return f"{row['name']}, ridge {row['ridge']:g}"
    return f"planted {row['points']:.0f} x {row['columns']:.0f}, noise {row['noise']:g}"


def program(table: pd.DataFrame) -> Finding:
    """Mixed-integer program compared with branch and bound."""
    rows = with_column(table, "seconds of program")
    rows = rows[rows["points"] >= PROGRAMMED]
    ended = rows["cost of program"] - rows["lower of program"] <= TOL
    times = rows["seconds of program"] / rows["seconds"]
    ratio = f"{times[ended].median():.0f} times as long (median)" if ended.any() else "never within the limit"
    return of_most(
        f"from {PROGRAMMED} points on, the integer program takes at least ten times as long or does not finish",
        ended & (rows["seconds of program"] >= 10.0 * rows["seconds"]) | ~ended & (rows["solved"] == 1),
        f"{{share}} of {{count}} instances up to 30 points; it finishes on {int(ended.sum())}, {ratio}.",
    )


def directions(table: pd.DataFrame) -> Finding:
    """All sign patterns in two and three dimensions compared with branch and bound."""
    rows = with_column(table, "seconds of directions")
    medians = (rows["seconds"] / rows["seconds of directions"]).groupby(rows["points"]).median()
    words = [f"{times:.2g} times as long at {points:g} points" for points, times in medians.items()]
    return of_most(
        "in two and three dimensions, branch and bound is faster than enumerating all directions",
        rows["seconds"] < rows["seconds of directions"],
        f"on {{share}} of {{count}} instances; it takes {', '.join(words[:: max(1, len(words) - 1)])} (medians).",
        partly=0.5,
        comment="The number of directions to enumerate grows as n to the power d - 1; here d is 2 or 3.",
    )


def initializations(solved: pd.DataFrame) -> Finding:
    """Alternation from random starts."""
    least = solved["runs that reach"]
    return of_most(
        f"{RESTARTS} runs of alternation from random directions reach the optimum (without certifying it)",
        solved["above restarts"] <= REACHED,
        f"on {{share}} of {{count}} instances; a single run does with probability {least.median():.2g} (median), "
        f"at least {least.min():.2g}.",
    )


def roundings(solved: pd.DataFrame) -> Finding:
    """Labels of other methods compared with the optimum."""
    words = []
    for column in [name for name in solved if name.startswith("above ") and name != "above restarts"]:
        above = solved[column]
        words.append(f"{column.removeprefix('above ')} {100 * (above <= REACHED).mean():.0f} %, {cost_above(above)}")
    proportion = proportion_of((solved["above kmeans_centered"] <= REACHED).to_numpy())
    return ruled(
        "the paper's rounding of the relaxation is optimal up to the tolerance",
        f"kmeans_centered is optimal on {percent(proportion)} of {len(solved)} instances. Proportion optimal, and median "
        f"excess over the optimum: {'; '.join(words)}.",
        judge(proportion.low >= 0.5, proportion.value >= 0.5, tested=len(solved) >= MIN_ROWS),
        "agrees if the interval of the proportion is above 50 %, in part if the proportion is.",
    )


def cost_above(above: pd.Series) -> str:
    """Format the median excess over the optimum; rounding errors count as 0."""
    median = float(above.median())
    return f"{0.0 if abs(median) <= ROUNDING else median:.2g}"


def improved(solved: pd.DataFrame) -> Finding:
    """Rounding followed by alternation."""
    above = solved["above rounding, then alternation"]
    return of_most(
        "rounding followed by one alternation is optimal",
        above <= REACHED,
        f"on {{share}} of {{count}} instances, with an excess of at most {above.max():.2g}.",
    )


def nearer(solved: pd.DataFrame) -> Finding:
    """Which labels are closer to the true classes if they differ."""
    is_nearer = {}
    for part in ("real", "planted"):
        rows = solved[solved["part"] == part]
        difference = rows["error of rounding"] - rows["error of optimum"]
        is_nearer[part] = (difference[difference.abs() > ROUNDING] > 0.0).to_numpy()
    words = [
        f"{percent(proportion_of(better))} of {len(better)} {part} instances" for part, better in is_nearer.items()
    ]
    real = solved[solved["part"] == "real"]
    medians = ", ".join(f"{who} {real[f'error of {who}'].median():.3f}" for who in ("optimum", "rounding", "k-means"))
    proportion = proportion_of(is_nearer["real"])
    return ruled(
        "if the two differ, the optimum is closer to the true classes than the rounding",
        f"on {', '.join(words)}. Median errors on the {len(real)} solved real instances: {medians}.",
        judge(proportion.low > 0.5, proportion.high > 0.5, tested=len(is_nearer["real"]) >= MIN_ROWS),
        "agrees if the interval of the proportion of real sets is above 50 %, in part if it contains 50 %.",
    )


def classes(solved: pd.DataFrame) -> Finding:
    """Objective of the true classes."""
    words = [
        f"{part} {100 * (rows['above true classes'] <= REACHED).mean():.0f} % (median {cost_above(rows['above true classes'])} above)"
        for part, rows in solved.groupby("part", sort=False)
    ]
    return Finding("how often the true classes have the lowest objective", "; ".join(words) + ".")


def with_column(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows on which a method was run; none if the table does not have its column."""
    return table[table[column].notna()] if column in table else table.iloc[:0]


def check_bounds(table: pd.DataFrame) -> Outcome:
    """Pass if no labels have an objective below a lower bound and all exact methods agree."""
    wrong = contradictions(table)
    return Outcome("\n".join([f"{len(wrong)} contradictions between bounds and costs", *wrong]), not wrong)


def contradictions(table: pd.DataFrame) -> list[str]:
    """Describe every objective below a bound, and every exact objective that differs on a solved instance."""
    found = []
    for _, row in table.iterrows():
        costs = {name: row["upper"] + row[name] for name in row.index if str(name).startswith("above ")}
        costs |= {who: row.get(f"cost of {who}", np.nan) for who in OTHERS}
        below = [name for name, cost in costs.items() if cost < row["lower"] - ROUNDING]
        bounds = {who: row.get(f"lower of {who}", np.nan) for who in OTHERS}
        above = [who for who, lower in bounds.items() if lower > row["upper"] + TOL]
        found += [f"BELOW THE BOUND: {name}, {name_of(row)}" for name in below]
        found += [f"BOUND ABOVE THE COST: {OTHERS[who]}, {name_of(row)}" for who in above]
    return found
