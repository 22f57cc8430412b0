"""Tables on a cluster: results equal those of one process, communication is small, and lost processes are handled."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from instances import assert_same_bracket

import diffrac_cvx as dc
from diffrac_cvx.rounding import kmeans_centered

N, D, PARTS = 12_000, 6, 8
TOL = 1e-8
ROOT = Path(dc.__file__).parents[1]


def make_data(n=N):
    rng = np.random.default_rng(n)
    points = rng.standard_normal((n, D))
    points[:, 0] += 3.0 * (np.arange(n) < n / 2)
    return points


def from_file(path, n=N, parts=PARTS):
    """Return a table of chunks that the workers read from a file."""
    size = n // parts
    table = dask.delayed(np.load)(str(path), mmap_mode="r")
    return da.concatenate([da.from_delayed(table[i : i + size], (size, D), float) for i in range(0, n, size)])


@pytest.fixture(scope="module")
def points():
    return make_data()


@pytest.fixture(scope="module")
def table(points, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "points.npy"
    np.save(path, points)
    return from_file(path)


@contextlib.contextmanager
def cluster(workers, **options):
    """Local cluster of processes, with its client."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, **options) as made,
        Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def four():
    with cluster(4) as client:
        yield client


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def processes(tmp_path):
    """Scheduler and two workers as processes that can be killed; their client is active."""
    where = tmp_path / "scheduler.json"
    scheduler = start("distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(where))
    options = ("--scheduler-file", str(where), "--nthreads", "1", "--no-nanny", "--no-dashboard")
    workers = [start("distributed.cli.dask_worker", *options) for _ in range(2)]
    client = Client(scheduler_file=str(where), timeout=90)
    try:
        client.wait_for_workers(2, timeout=90)
        with client.as_current():
            yield scheduler, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
        with contextlib.suppress(Exception):
            client.close(timeout=2)


def once(act, after=0):
    """Callback that acts once, after the first certified bounds, and records when."""
    acted = []

    def callback(progress):
        if not acted and progress.upper < 1.0 and progress.iteration >= after:
            acted.append(time.perf_counter())
            act()

    return callback, acted


def test_a_cluster_in_this_process_gives_what_is_computed_without_it():
    points = make_data(240)
    table = da.from_array(points, chunks=(70, D))
    expected = dc.low_rank(table, 0.6, ridge=0.1, tol=TOL)
    with cluster(2, processes=False):
        held = table.persist()
        assert_same_bracket(dc.low_rank(held, 0.6, ridge=0.1, tol=TOL), expected)
        assert_same_bracket(dc.certify_v(table, expected.V, 0.6, ridge=0.1), expected)
        broken = table.map_blocks(lambda block: block[:, :3] if len(block) < 70 else block, dtype=float)
        with pytest.raises(dc.DataError, match="chunk"):
            dc.low_rank(broken, tol=TOL)


@pytest.mark.slow
@pytest.mark.parametrize("nu", [1.0, 0.6])
@pytest.mark.parametrize("penalty", [dc.Penalty(), dc.Penalty(ridge=0.1, lam=0.02)], ids=["none", "both"])
def test_four_processes_give_what_the_array_gives(four, points, table, nu, penalty):
    expected, found = (dc.low_rank(given, nu, penalty, tol=TOL) for given in (points, table))
    assert_same_bracket(found, expected)
    assert_same_bracket(dc.certify_v(table, expected.V, nu, penalty), dc.certify_v(points, expected.V, nu, penalty))
    y = kmeans_centered(expected.F)
    np.testing.assert_array_equal(kmeans_centered(found.factor), y)
    np.testing.assert_array_equal(np.abs(found.F @ found.F[0]) > 0.5, np.abs(expected.F @ expected.F[0]) > 0.5)
    proofs = [dc.certify_labels(given, y, expected, nu=nu, penalty=penalty) for given in (points, table)]
    assert proofs[1].objective == pytest.approx(proofs[0].objective, abs=1e-9)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_bracket(points, table):
    with cluster(4) as client:
        expected = dc.low_rank(table, ridge=0.1, lam=0.02, tol=1e-10)
        killed = next(iter(client.run(os.getpid).values()))
        callback, acted = once(lambda: os.kill(killed, signal.SIGKILL))
        found = dc.low_rank(table, ridge=0.1, lam=0.02, tol=1e-10, callback=callback)
        assert acted
        assert killed not in client.run(os.getpid).values()
    assert_same_bracket(found, expected, 1e-9)


@pytest.mark.slow
def test_a_lost_scheduler_is_an_error_with_what_is_proved_until_then(processes, points, table):
    scheduler, _ = processes
    optimum = dc.low_rank(points, lam=0.02, tol=1e-6)
    callback, acted = once(scheduler.kill)
    with pytest.raises(dc.ClusterConnectionError, match=r"certified so far: the optimum lies in \[0\.") as lost:
        dc.low_rank(table, lam=0.02, tol=1e-12, callback=callback)
    assert time.perf_counter() - acted[0] < 60.0
    lower, upper = lost.value.bracket
    assert 0.0 <= lower <= optimum.upper
    assert optimum.lower <= upper < 1.0
    assert pickle.loads(pickle.dumps(lost.value)).bracket == lost.value.bracket


@pytest.mark.slow
def test_a_limit_and_ctrl_c_are_kept_while_workers_read(four, table):
    waiting = table.map_blocks(slowly, meta=np.empty((0, 0)))
    started = time.perf_counter()
    result = dc.low_rank(waiting, time_limit=1.0)
    assert time.perf_counter() - started < 10.0
    assert result.status is dc.Status.TIME_LIMIT
    timer = threading.Timer(0.5, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    started = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            dc.low_rank(waiting)
    finally:
        timer.cancel()
    assert time.perf_counter() - started < 10.0  # eight chunks of five seconds on four workers


# The workers cannot import this module, so its functions are pickled by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def slowly(block):
    time.sleep(5.0)
    return block


@pytest.mark.slow
def test_a_chunk_that_ends_every_worker_is_said_to_be_lost(table):
    deadly = da.from_delayed(dask.delayed(os._exit)(1), (5, D), float)
    with cluster(2), pytest.raises(dc.ClusterConnectionError, match="KilledWorker"):
        dc.low_rank(da.concatenate([table, deadly]), time_limit=120)
