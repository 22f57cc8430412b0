"""The convergence benchmark: its instances, its cells, and detection of incorrect statuses."""

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.benchmark import convergence
from experiments.problems import FAMILIES, OUTLIER, make_instance


@pytest.mark.parametrize("family", FAMILIES)
def test_an_instance_depends_on_its_name_and_size_alone(family):
    X, nu, penalty = make_instance(family, 12, 5)
    again, *_ = make_instance(family, 12, 5)
    assert X.shape == (12, 5)
    np.testing.assert_array_equal(X, again)
    assert 0.0 < nu <= 1.0
    assert penalty.has_l1 == (not family.endswith("no penalty"))
    if "outlying rows" in family:
        assert np.abs(X).max() > OUTLIER / 10


def test_a_goal_that_is_not_reached_is_not_counted_and_a_false_status_is_noticed():
    deadline = convergence.Deadline(60.0)
    X, nu, penalty = make_instance("planted", 12, 5)
    result = dc.low_rank(X, nu, penalty, tol=1e-4)
    good = convergence.read(result, 1e-4, deadline)
    assert (good["solved 0.0001"], good["true 0.0001"]) == (1, 1)
    missed = convergence.read(result, result.gap / 2, deadline)
    label = f"{result.gap / 2:g}"
    assert (missed[f"solved {label}"], missed[f"true {label}"]) == (0, 0)
    stopped = dc.low_rank(X, nu, penalty, tol=1e-12, max_iter=10)
    assert convergence.read(stopped, 1e-12, deadline)["true 1e-12"] == 1


def test_a_deadline_stops_a_solver_that_would_go_on():
    instance = make_instance("correlated", 100, 100)
    result = convergence.solve("low_rank", instance, 1e-14, convergence.Deadline(0.1))
    assert result.status in (dc.Status.STOPPED, dc.Status.TIME_LIMIT)  # processor or wall-clock time
    assert result.gap > 1e-14


def test_an_incorrect_status_and_bounds_that_contradict_those_of_another_solver_fail_the_check():
    cells = [{"family": "planted", "n": 5, "d": 1, "method": name} for name in ("low_rank", "fista")]
    table = convergence.complete(pd.DataFrame([{**cell, **convergence.measure(**cell)} for cell in cells]))
    assert convergence.check(table).passed
    assert convergence.reached_fractions(table).loc["low_rank", ["instances", "to 1e-08"]].tolist() == [1, 1]
    assert convergence.by_family(table, 1e-4).loc["planted", "low_rank"] == "1 of 1"
    untrue = table.copy()
    untrue.loc[0, "true 0.0001"] = 0
    assert not convergence.check(untrue).passed
    lying = table.copy()
    lying.loc[lying["method"] == "low_rank", ["lower 0.0001", "lower 1e-08"]] += 0.1
    assert not convergence.check(convergence.complete(lying)).passed
