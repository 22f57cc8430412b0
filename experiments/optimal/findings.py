"""Findings of `make optimal`, each with its rule."""

import numpy as np
import pandas as pd

from experiments.harness.command import Outcome
from experiments.harness.findings import MIN_INSTANCES, Finding, Rule, holds_mostly, shares
from experiments.optimal.cells import REACHED, RESTARTS, RIDGE_OF_LARGE, TOL

TITLE = "Certified optimal labels, and how close the relaxation comes to them"
ABOUT = (
    f"`optimal_labels` to a gap of {TOL:g} at nu = 1 on standardised columns: real sets at ridges of 1, 0.3, 0.1 and 0 (dna, a1a and "
    f"w1a at {RIDGE_OF_LARGE:g} alone), planted labels without a ridge, and small planted instances. The root gap is the gap of the "
    "relaxation before branching. Compared with a mixed-integer linear program by HiGHS (n up to 30), "
    f"all sign patterns of directions (d up to 3) and {RESTARTS} runs of alternation. Seconds of processor time, one thread."
)
SMALL_GAP = 0.05  # at the root
ROUNDING = 1e-9  # between exact methods
EASY = 0.25  # hardness
PROGRAMMED = 20  # fewest points at which the integer program is judged
OTHERS = {"program": "the integer program", "directions": "all directions"}
NEAR, FAR = f"root gap below {SMALL_GAP:g}", f"root gap of {SMALL_GAP:g} or more"
LITTLE, MUCH = f"hardness of at most {EASY:g}", f"hardness above {EASY:g}"
TEN_TIMES = f"integer program at least 10 times as long or not finished, from {PROGRAMMED} points on"
ENUMERATED = "search faster than all directions, d = 2 and 3"
RESTARTED, ROUNDED, IMPROVED = f"best of {RESTARTS} alternations", "kmeans_centered", "rounding, then alternation"

SMALL_ROOT = holds_mostly("if the root gap is small, the labels are certified as optimal within the time limit", NEAR)
HARDNESS = holds_mostly("if the hardness is small, the labels are certified as optimal within the time limit", LITTLE)
PROGRAM = holds_mostly("the integer program takes ten times as long or does not finish", TEN_TIMES)
DIRECTIONS = holds_mostly("in two and three dimensions, the search is faster than all directions", ENUMERATED, 0.5)
ALTERNATION = holds_mostly("alternation from many random directions reaches the optimum, uncertified", RESTARTED)
IMPROVEMENT = holds_mostly("rounding followed by one alternation is optimal", IMPROVED)


def holds_for_more_than_half(statement: str, row: str) -> Rule:
    """Return the rule that a row of a table of `shares` has a share above 50 %, in part if its interval is not."""
    return Rule(
        statement,
        f'agrees if the interval of the share of "{row}" is above 50 %, in part if the share is; not tested with fewer '
        f"than {MIN_INSTANCES} instances",
        lambda table: table.loc[row, "share"].low > 0.5,
        lambda table: table.loc[row, "share"].value > 0.5,
        tested=lambda table: row in table.index and table.loc[row, "instances"] >= MIN_INSTANCES,
    )


PAPER_ROUNDING = holds_for_more_than_half(
    "the rounding of the paper is optimal up to the tolerance on most instances", ROUNDED
)
NEARER = holds_for_more_than_half(
    "if the two differ, the optimum is closer to the true classes than the rounding", "real"
)
RULES = (SMALL_ROOT, HARDNESS, PROGRAM, DIRECTIONS, ALTERNATION, IMPROVEMENT, PAPER_ROUNDING, NEARER)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return what the search certifies, how it compares with exact methods, and how close heuristics come."""
    solved = table[table["solved"] == 1]
    limits = " or ".join(f"{limit:g}" for limit in sorted(table["limit"].unique(), reverse=True))
    return [
        Finding(
            f"Labels certified as optimal to {TOL:g} within {limits} s of processor time, and medians of these",
            certified(table),
        ),
        Finding("Share certified, by difficulty", by_difficulty(table), [SMALL_ROOT, HARDNESS]),
        Finding(
            "The search compared with other exact methods, and median ratio of their time to that of the search",
            exact_methods(table),
            [PROGRAM, DIRECTIONS],
        ),
        Finding(
            f"Labels of other methods on {len(solved)} solved instances: share optimal, and objective above the optimum",
            heuristics(solved),
            [ALTERNATION, IMPROVEMENT, PAPER_ROUNDING],
            f"A single alternation reaches the optimum with probability {solved['runs that reach'].median():.2g} (median).",
        ),
        Finding(
            "Share of instances on which the optimum is closer to the true classes, where it differs from the rounding",
            nearer(solved),
            [NEARER],
            "Last columns: median errors on the solved instances.",
        ),
    ]


def certified(table: pd.DataFrame) -> pd.DataFrame:
    """Return the number of instances solved, and the median time and number of relaxations, by part."""
    solved = table[table["solved"] == 1]
    medians = solved.groupby("part", sort=False)[["seconds", "nodes"]].median()
    counts = table.groupby("part", sort=False)["solved"].agg(instances="size", certified="sum")
    return counts.join(medians.rename(columns={"nodes": "relaxations"}))


def summarize_real(table: pd.DataFrame) -> str:
    """Return on how many problems from real data the labels are certified, and on how many points at most."""
    real = table[table["part"] == "real"]
    solved = real[real["solved"] == 1]
    return (
        f"{len(solved)} of {len(real)} problems on {real['name'].nunique()} public tables to a gap of "
        f"{np.format_float_positional(TOL)}, with a limit of {real['limit'].max():g} s of processor time; the largest of "
        f"these has {solved['points'].max():.0f} points"
    )


def by_difficulty(table: pd.DataFrame) -> pd.DataFrame:
    """Return the share certified for small and large root gaps, and for small and large hardness."""
    near, rated = table["root_gap"] < SMALL_GAP, with_column(table, "hardness")
    easy = rated["hardness"] <= EASY
    rows = {NEAR: table[near], FAR: table[~near], LITTLE: rated[easy], MUCH: rated[~easy]}
    return shares({name: part["solved"] for name, part in rows.items()})


def exact_methods(table: pd.DataFrame) -> pd.DataFrame:
    """Return the share of instances on which the search is better than a program and an enumeration."""
    programmed, enumerated = (with_column(table, f"seconds of {name}") for name in ("program", "directions"))
    programmed = programmed[programmed["points"] >= PROGRAMMED]
    finished = programmed["cost of program"] - programmed["lower of program"] <= TOL
    by_program = programmed["seconds of program"] / programmed["seconds"]
    by_directions = enumerated["seconds of directions"] / enumerated["seconds"]
    better = {TEN_TIMES: finished & (by_program >= 10.0) | ~finished & (programmed["solved"] == 1)}
    found = shares({**better, ENUMERATED: by_directions > 1.0})
    return found.assign(**{"ratio of times": [by_program.median(), by_directions.median()]})


def heuristics(solved: pd.DataFrame) -> pd.DataFrame:
    """Return the share of optimal labels of other methods, and their median and largest excess over the optimum."""
    excess = {name.removeprefix("above "): solved[name] for name in solved if name.startswith("above ")}
    excess[RESTARTED] = excess.pop("restarts")
    found = shares({name: above <= REACHED for name, above in excess.items()})
    medians = pd.Series({name: above.median() for name, above in excess.items()})
    found["median excess"] = medians.where(medians.abs() > ROUNDING, 0.0)
    return found.assign(**{"largest excess": pd.Series({name: above.max() for name, above in excess.items()})})


def nearer(solved: pd.DataFrame) -> pd.DataFrame:
    """Return, for real and planted instances, how often the optimum is closer to the true classes than the rounding."""
    parts, better, errors = {part: solved[solved["part"] == part] for part in ("real", "planted")}, {}, {}
    for part, rows in parts.items():
        difference = rows["error of rounding"] - rows["error of optimum"]
        better[part] = difference[difference.abs() > ROUNDING] > 0.0
        errors[part] = {
            f"error of {who}": rows[f"error of {who}"].median() for who in ("optimum", "rounding", "k-means")
        }
    return shares(better).join(pd.DataFrame.from_dict(errors, orient="index"))


def with_column(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows on which a method was run; none if the table does not have its column."""
    return table[table[column].notna()] if column in table else table.iloc[:0].reindex(columns=[*table.columns, column])


def check(table: pd.DataFrame) -> Outcome:
    """Pass if no labels have an objective below a lower bound and all exact methods agree."""
    wrong = []
    for _, row in table.iterrows():
        costs = {name: row["upper"] + row[name] for name in row.index if str(name).startswith("above ")}
        costs |= {who: row.get(f"cost of {who}", np.nan) for who in OTHERS}
        below = [name for name, cost in costs.items() if cost < row["lower"] - ROUNDING]
        bounds = {who: row.get(f"lower of {who}", np.nan) for who in OTHERS}
        above = [who for who, lower in bounds.items() if lower > row["upper"] + TOL]
        which = ", ".join(
            f"{name} {row[name]}" for name in ("name", "points", "columns", "ridge", "noise") if name in row
        )
        wrong += [f"BELOW THE BOUND: {name}, {which}" for name in below]
        wrong += [f"BOUND ABOVE THE COST: {OTHERS[who]}, {which}" for who in above]
    return Outcome("\n".join([f"{len(wrong)} contradictions between bounds and costs", *wrong]), not wrong)
