"""Rules of the verdicts: each gives each of its answers on suitably modified committed tables."""

from functools import cache
from pathlib import Path

import numpy as np
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, each_answer, verdict_of

from experiments.harness.claims import split_parts
from experiments.harness.tables import read_table
from experiments.robustness import claims as robustness
from experiments.robustness.cells import FISTA, WITHOUT_LAMBDA

FIGURES = Path(__file__).parents[2] / "figures"
LOOSE, TIGHT, SCS = "FISTA, 1e-2", "FISTA, 1e-3", "CVXPY + SCS"


@cache
def committed(name):
    table = read_table(FIGURES / f"{name}.csv")
    return split_parts(table) if "part" in table else table


def with_proportion(p):
    """A 0/1 column with the given fraction of ones, spread evenly over the rows."""
    return lambda table: ((np.arange(len(table)) * 0.6180339887) % 1.0 < p).astype(int)


def where(condition, yes, no):
    """A column with one value if a condition on the table holds, and another value otherwise."""
    return lambda table: np.where(condition(table), of(table, yes), of(table, no))


def of(table, entry):
    return entry(table) if callable(entry) else entry


# Figure 4


def reaches(reach):
    """The crossings if a method's error is 0 up to a dimension, its own or one per lambda, and 1 beyond."""
    scatter = np.exp(0.1 * np.random.default_rng(2).standard_normal(10_000))

    def error(t):
        at = [
            reach.get((method, lam), reach.get(method, 20)) for method, lam in zip(t["method"], t["lam"], strict=True)
        ]
        return (t["d"] > np.array(at) * scatter[: len(t)]).astype(float)

    return robustness.Reaches(committed("robustness").query("replication < 6").assign(error=error))


def two_epsilons(fall=0.0, gap=1e-3):
    """FISTA's runs: the error falls with epsilon, equally at each lambda or by the given amounts."""
    table, rng = committed("robustness").query("method in @FISTA"), np.random.default_rng(2)
    second = table["method"] == TIGHT
    drop = table["lam"].map(fall if isinstance(fall, dict) else dict.fromkeys(table["lam"], fall))
    error = 0.5 - second * drop + 0.001 * rng.standard_normal(len(table))
    return table.assign(error=error, gap=np.where(second, gap, 1e-2), met=1)


def baselines(rivals, plain, sparse):
    reach = dict.fromkeys(WITHOUT_LAMBDA, rivals) | {"low_rank": sparse, ("low_rank", 0.0): plain}
    return robustness.few_dimensions(reaches(reach))


FIGURE_4 = {
    "the baselines are to fail before the relaxation": (
        baselines,
        ((7, 20, 40), AGREES), ((20, 20, 40), PARTLY), ((20, 20, 20), DIFFERS), ((1000, 2000, 3000), DIFFERS),
    ),
    "the sparse regulariser is to reach further": (
        lambda plain, small, large: robustness.sparsity_helps(
            reaches({("low_rank", 0.0): plain, ("low_rank", 0.001): small, ("low_rank", 0.01): large})
        ),
        ((14, 40, 40), AGREES), ((14, 14, 40), PARTLY), ((14, 8, 8), DIFFERS),
        ((1000, 1000, 1000), NOT_TESTED),
    ),
    "the error is sensitive to epsilon where the paired difference is notable": (
        lambda *made: robustness.sensitive(two_epsilons(*made)),
        ((0.1,), AGREES), ((-0.1,), AGREES), (({0.0: 0.0, 0.001: 0.1, 0.01: 0.0},), PARTLY), ((0.0,), DIFFERS),
        ((0.005,), DIFFERS), ((0.1, 1e-2), NOT_TESTED),
    ),
}  # fmt: skip


def test_runs_that_a_limit_ended_with_a_wider_gap_do_not_turn_the_sign():
    table = two_epsilons(0.1)
    stopped = (table["method"] == TIGHT) & (table["d"] > 8)
    claim = robustness.sensitive(
        table.assign(gap=table["gap"].mask(stopped, 0.5), error=table["error"].mask(stopped, 1.0))
    )
    assert claim.verdict is AGREES
    assert "falls by 0.1" in claim.measured


def test_a_stopped_run_takes_no_part_in_what_both_rules_ended():
    table = two_epsilons()
    stopped = (table["method"] == TIGHT) & (table["replication"] == 0)
    both = robustness.paired(table.assign(met=1 - stopped.astype(int)), *FISTA, met=True)
    assert set(both["replication"]) == set(range(1, 10))


@each_answer(FIGURE_4)
def test_a_rule_gives_each_of_its_answers(rule, given, verdict):
    assert verdict_of(rule, given) is verdict
