"""Time limits: long computations check the deadline, no thread is left running, and results are valid."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx import paths
from diffrac_cvx.machine import deadlines

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::diffrac_cvx.DegenerateDataWarning"
)
BOTH = dc.Penalty(lam=0.1, ridge=0.3)
RIDGE = dc.Penalty(ridge=0.3)


def split(n, d):
    """Points in two clusters, separated along the first feature."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X[:, 0] += 2.0 * np.where(np.arange(n) % 2, 1.0, -1.0)
    return X


# No thread is left running

LIMITS = """
import threading, warnings
import numpy as np
import diffrac_cvx as dc

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
wide, long, U = rng.standard_normal((60, 700)), rng.standard_normal((10_000, 12)), rng.standard_normal((700, 700))
calls = 0
for X, start in ((wide, None), (wide, U @ U.T), (long, None)):
    for lam in (0.0, 0.05):
        for solver in (dc.low_rank, dc.fista):
            found = solver(X, lam=lam, ridge=0.3, tol=1e-12, start=start, time_limit=0.05)
            assert 0.0 <= found.lower <= found.upper <= 1.0, found
            assert threading.active_count() == 1, threading.enumerate()
            calls += 1
print(calls)
"""


def test_a_process_that_hit_several_limits_ends_well_with_no_thread_left():
    """A thread still in the linear algebra when the process exits causes a segmentation fault."""
    ended = subprocess.run([sys.executable, "-c", LIMITS], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "12", "")


@pytest.mark.parametrize("solver", [dc.low_rank, dc.fista])
def test_the_callback_is_called_in_the_callers_thread_while_a_point_is_computed(solver):
    calls = []

    def callback(progress):
        calls.append((threading.get_ident(), progress.seconds))
        return len(calls) >= 2

    started = time.perf_counter()
    found = solver(split(300, 700), lam=1e-4, tol=1e-12, callback=callback)
    assert time.perf_counter() - started < 10.0
    assert found.status is dc.Status.STOPPED
    assert {thread for thread, _ in calls} == {threading.get_ident()}
    assert len(calls) == 2


def test_an_interrupt_while_a_point_is_computed_ends_the_solver():
    def interrupt(progress):
        raise KeyboardInterrupt

    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        dc.low_rank(split(300, 700), lam=1e-5, tol=1e-9, callback=interrupt)
    assert time.perf_counter() - started < 5.0
    assert deadlines.current_deadline.get() is None


# No result is worse than the start


@pytest.mark.parametrize("time_limit", [1e-6, 0.05])
@pytest.mark.parametrize("penalty", [BOTH, RIDGE], ids=["l1 and ridge", "ridge"])
@pytest.mark.parametrize("solver", [dc.low_rank, dc.fista])
def test_no_answer_is_worse_than_the_start_however_short_the_limit(solver, penalty, time_limit):
    """The start uses the first feature, and a little of two others."""
    X, U = split(60, 600), np.zeros((600, 2))
    U[0, 0], U[1:3, 1] = 1.0, 1e-3
    V = U @ U.T
    known = dc.certify_v(X[:, :3], V[:3, :3], penalty=penalty).upper  # V is zero elsewhere: its objective is the same
    assert known < 0.6
    found = solver(X, penalty=penalty, start=V, tol=1e-12, time_limit=time_limit)
    assert found.upper <= known + 1e-9
    assert 0.0 <= found.lower <= found.upper


# Limits are respected


@pytest.mark.parametrize("variant", ["accelerated", "published"])
def test_the_set_up_of_many_rows_checks_the_deadline(variant):
    X = np.random.default_rng(0).standard_normal((150_000, 20))
    started = time.perf_counter()
    found = dc.fista(X, lam=0.01, tol=1e-12, time_limit=0.1, variant=variant)
    assert time.perf_counter() - started < 2.6
    assert found.status is dc.Status.TIME_LIMIT


MODERATE = {"wide": (60, 1500), "square": (1200, 1000), "long": (100_000, 12)}
LIMIT, SLACK = 1.0, 3.0
LIMITED_CALLS = {
    "low_rank": lambda X, penalty: dc.low_rank(X, 1.0, penalty, tol=1e-12, time_limit=LIMIT),
    "fista": lambda X, penalty: dc.fista(X, 1.0, penalty, tol=1e-12, time_limit=LIMIT),
    "published": lambda X, p: dc.fista(X, 1.0, p, tol=1e-9, time_limit=LIMIT, variant="published"),
    "labels": lambda X, p: dc.MultiLabelDiffrac(n_labels=2, lam=p.lam, tol=1e-12, time_limit=LIMIT).fit(X),
    "choice": lambda X, _: dc.DiffracClusteringCV(time_limit=LIMIT, n_resamples=2).fit(X),
    "path of nu": lambda X, p: paths.nu_path(X, [0.5, 1.0], p, tol=1e-12, time_limit=LIMIT),
    "path of lambda": lambda X, _: paths.lambda_path(X, [0.1, 0.01], tol=1e-12, time_limit=LIMIT),
    "comparison": lambda X, p: dc.compare(X, methods=["low_rank", "fista"], penalty=p, tol=1e-12, time_limit=LIMIT),
}
CLUSTERINGS = ({}, {"n_clusters": 3})
LIMITED_CALLS |= {
    str(more): lambda X, p, more=more: dc.DiffracClustering(
        lam=p.lam, ridge=p.ridge, tol=1e-12, time_limit=LIMIT, **more
    ).fit(X)
    for more in CLUSTERINGS
}


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [RIDGE, dc.Penalty(lam=0.01, ridge=0.3)], ids=["ridge", "l1"])
@pytest.mark.parametrize("size", MODERATE)
@pytest.mark.parametrize("name", LIMITED_CALLS)
def test_every_function_with_a_limit_of_a_second_keeps_it(name, size, penalty):
    X = split(*MODERATE[size])
    dc.DiffracClustering(time_limit=0.1).fit(X[:50, :5])  # imports are not timed
    started = time.perf_counter()
    LIMITED_CALLS[name](X, penalty)
    assert time.perf_counter() - started < LIMIT + SLACK
