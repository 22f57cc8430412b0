"""Figure 4: dimensions at which methods fail, and pairs of runs, from the committed table with other errors."""

from functools import cache

import numpy as np
import pytest

from experiments.harness.reproduction import FIGURES
from experiments.harness.tables import read_table
from experiments.robustness import findings as robustness
from experiments.robustness.cells import FISTA, LAMBDAS, WITHOUT_LAMBDA

TIGHT = FISTA[1]


@cache
def committed():
    return read_table(FIGURES / "robustness.csv")


def reaches(reach):
    """The crossings if a method's error is 0 up to a dimension, its own or one per lambda, and 1 beyond."""
    scatter = np.exp(0.1 * np.random.default_rng(2).standard_normal(10_000))

    def error(t):
        at = [
            reach.get((method, lam), reach.get(method, 20)) for method, lam in zip(t["method"], t["lam"], strict=True)
        ]
        return (t["d"] > np.array(at) * scatter[: len(t)]).astype(float)

    return robustness.crossings(committed().query("replication < 6").assign(error=error))


def two_epsilons(fall=0.0, gap=1e-3):
    """FISTA's runs: the error falls with epsilon, equally at each lambda."""
    table, rng = committed().query("method in @FISTA"), np.random.default_rng(2)
    second = table["method"] == TIGHT
    error = 0.5 - second * fall + 0.001 * rng.standard_normal(len(table))
    return table.assign(error=error, gap=np.where(second, gap, 1e-2), met=1)


def test_crossings_and_gains_are_those_the_errors_were_made_with():
    reach = dict.fromkeys(WITHOUT_LAMBDA, 7) | {"low_rank": 40, ("low_rank", 0.0): 20}
    found = robustness.where_they_fail(reaches(reach))
    plain, _, sparse = (found.loc[f"relaxation, lambda = {lam:g}"] for lam in LAMBDAS)
    for name, column in zip(WITHOUT_LAMBDA, robustness.GAINS, strict=True):
        assert found.loc[name, "crosses at"].value == pytest.approx(7, abs=1.5)
        assert plain[column].value == pytest.approx(13, abs=4)
        assert sparse[column].low > plain[column].low > 0
    assert sparse[robustness.PLAIN].value == pytest.approx(20, abs=5)
    none = robustness.where_they_fail(reaches(dict.fromkeys((*WITHOUT_LAMBDA, "low_rank"), 1000)))
    assert not none["fails"].any()
    assert set(none["crosses at"]) == {"above 48"}


def test_runs_that_a_limit_ended_with_a_wider_gap_do_not_turn_the_sign():
    table = two_epsilons(0.1)
    stopped = (table["method"] == TIGHT) & (table["d"] > 8)
    ended = table.assign(gap=table["gap"].mask(stopped, 0.5), error=table["error"].mask(stopped, 1.0))
    found = robustness.sensitive(ended)
    assert (found["smaller gap"] < found["pairs"]).all()
    assert [fall.value for fall in found["error falls by"]] == pytest.approx([0.1] * 3, abs=2e-3)
    assert robustness.sensitive(two_epsilons(gap=1e-2))["smaller gap"].sum() == 0
