"""Findings of `make weak`, each with its rule."""

import pandas as pd

from experiments.harness.command import Outcome
from experiments.harness.findings import Finding, Rule, holds_mostly, shares
from experiments.harness.intervals import mean_of
from experiments.weak.cells import (
    FEW,
    KINDS,
    LIMIT,
    MANY,
    METHODS,
    MOST_POINTS,
    OPTIMUM,
    PROGRAM,
    RIDGE,
    SETS,
    TOL,
    TRUTH,
)

TITLE = "Weak supervision: bags, order and proportions"
ABOUT = (
    f"Labels under weak supervision, that is known facts about sets of rows ({', '.join(SETS)}; up to {MOST_POINTS['full']} rows, standardised columns, ridge "
    f"{RIDGE:g}). Bags: a positive bag has at least one positive row, here one or two, and negative bags have none; nu = 0. Order: in each "
    "clip the label rises once, from -1 to +1. Proportions: the number of positive rows of each bag is known. `optimal_labels` with "
    f"`Constraints`, to a gap of {TOL:g} or {LIMIT:g} s of processor time, compared with alternation between labels and direction from "
    "random labels that satisfy the constraints (lowest objective of 5 and of 200 starts; for bags, the first start has all unknown "
    "labels +1), and with the quadratic program of practice, labels in [-1, 1], followed by alternation. All labels satisfy the "
    "constraints. F1 of the positive rows for bags, otherwise accuracy; known labels included."
)
SLACK = 1e-6  # of the bound of the quadratic program, whose solver is not certified
SAME = 1e-9  # objectives or scores that differ by less are equal
ALL = "all instances"
WEAK = "bound of the quadratic program below half of the optimum"


def near(method: str) -> str:
    """Return the name of the share of instances on which a method reaches the objective of the optimum."""
    return f"{method}: objective within {TOL:g} of that of the optimum"


REACHED = near(MANY)

PROVED = holds_mostly("labels under weak supervision are certified as optimal within the time limit", ALL)
PRACTICE = holds_mostly("the quadratic program of practice proves less than half of the optimal objective", WEAK)
ENOUGH = holds_mostly("alternation from many starts reaches the optimum, uncertified", REACHED)


def better_than(statement: str, method: str) -> Rule:
    """Return the rule that the optimum has a higher mean F1 than another method in bags."""
    row = ("bags", method)
    return Rule(
        statement,
        "agrees if the interval of the mean gain in F1 is above 0, in part if the mean gain is at least 0; not tested with "
        "fewer than 12 instances of bags",
        lambda table: table.loc[row, "gain of the optimum"].low > 0.0,
        lambda table: table.loc[row, "gain of the optimum"].value >= 0.0,
        tested=lambda table: row in table.index and table.loc[row, "instances"] >= 12,
    )


OVER_FEW = better_than("in bags, the optimum finds the positive rows better than alternation from few starts", FEW)
OVER_MANY = better_than("in bags, the optimum finds the positive rows better than alternation from many starts", MANY)
OVER_PROGRAM = better_than(
    "in bags, the optimum finds the positive rows better than the quadratic program followed by alternation", PROGRAM
)
RULES = (PROVED, PRACTICE, ENOUGH, OVER_FEW, OVER_MANY, OVER_PROGRAM)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return what is certified, the lower bounds, how often heuristics reach the optimum, and how right the labels are."""
    scored = scores(table)
    better = int(scored.loc[(slice(None), [FEW, MANY]), "better than the optimum"].sum())
    return [
        Finding(
            f"Labels certified as optimal to {TOL:g}; median processor time, largest gap", certified(table), [PROVED]
        ),
        Finding(
            "Mean certified lower bounds, and mean objective of the labels found: of the quadratic program, of the relaxation "
            "with the constraints as rows but no further inequalities, and with inequalities on triples and products",
            bounds(table),
        ),
        Finding(
            "Share of instances; the optimum is that of `optimal_labels`, certified or not",
            counted(table),
            [PRACTICE, ENOUGH],
        ),
        Finding(
            "F1 of the positive rows in bags, accuracy otherwise: mean, mean gain of the optimum over each method, and number "
            "of instances on which the optimum is better and worse",
            scored,
            [OVER_FEW, OVER_MANY, OVER_PROGRAM],
            f"The labels of lowest objective are not always the most accurate: in {better} of {2 * len(table)} comparisons "
            "alternation has the higher score.",
        ),
    ]


def certified(table: pd.DataFrame) -> pd.DataFrame:
    """Return the share of certified instances, the median time of each method and the largest gap, by kind."""
    parts = {kind: table[table["kind"] == kind] for kind in KINDS} | {ALL: table}
    found = shares({name: rows["solved"] == 1 for name, rows in parts.items()})
    times = {f"s, {method}": f"seconds of {method}" for method in (OPTIMUM, MANY, PROGRAM)}
    medians = {title: {name: rows[column].median() for name, rows in parts.items()} for title, column in times.items()}
    return found.assign(**medians, **{"largest gap": {name: rows["gap"].max() for name, rows in parts.items()}})


def bounds(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean lower bounds of each relaxation, and the mean objectives of labels, by kind."""
    columns = {
        "quadratic program": "lower of program",
        "no further inequalities": "lower of root",
        "with inequalities": "lower",
        **{f"objective, {method}": f"objective of {method}" for method in (*METHODS, TRUTH)},
    }
    means = table.groupby("kind", sort=False)[list(columns.values())].mean()
    return means.rename(columns={column: title for title, column in columns.items()})


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """Return how often the quadratic program proves little, and how often heuristics reach the optimum."""
    rows = {WEAK: table["lower of program"] < 0.5 * table["lower"]}
    for method in (FEW, MANY, PROGRAM):
        rows[near(method)] = table[f"objective of {method}"] <= table["upper"] + TOL
    return shares(rows)


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score of each method, and the gain of the optimum over it, by kind."""
    rows = {}
    for kind, part in table.groupby("kind", sort=False):
        for method in METHODS:
            gain = part[f"right by {OPTIMUM}"] - part[f"right by {method}"]
            rows[kind, method] = {
                "instances": len(part),
                "mean": part[f"right by {method}"].mean(),
                "gain of the optimum": mean_of(gain) if method != OPTIMUM else "-",
                "worse than the optimum": int((gain > SAME).sum()),
                "better than the optimum": int((gain < -SAME).sum()),
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["kind", "method"])


def check(table: pd.DataFrame) -> Outcome:
    """Pass if no labels that satisfy the constraints have an objective below a lower bound."""
    wrong = []
    for _, row in table.iterrows():
        which = f"{row['kind']}, {row['name']}, bags of {row['size']}, seed {row['seed']}"
        for method in (*METHODS, TRUTH):
            if row[f"objective of {method}"] < row["lower"] - SAME:
                wrong.append(f"BELOW THE BOUND: {method}, {which}")
        if max(row["lower of program"] - SLACK, row["lower of root"]) > row["upper"]:
            wrong.append(f"BOUND ABOVE THE OBJECTIVE: {which}")
    return Outcome("\n".join([f"{len(wrong)} contradictions between bounds and objectives", *wrong]), not wrong)
