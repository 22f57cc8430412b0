"""Tables on a cluster: bounds equal those of the array, and lost processes are handled."""

import contextlib
import os
import signal
import time

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


def make_data(n=N):
    rng = np.random.default_rng(n)
    points = rng.standard_normal((n, D))
    points[:, 0] += 3.0 * (np.arange(n) < n / 2)
    return points


@pytest.fixture
def table(tmp_path):
    """Chunks that the workers read from a file."""
    np.save(tmp_path / "points.npy", make_data())
    read, size = dask.delayed(np.load)(str(tmp_path / "points.npy"), mmap_mode="r"), N // PARTS
    return da.concatenate([da.from_delayed(read[i : i + size], (size, D), float) for i in range(0, N, size)])


@contextlib.contextmanager
def cluster(workers, **options):
    """Local cluster of processes, with its client."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, **options) as made,
        Client(made) as client,
    ):
        yield client


def test_a_cluster_in_this_process_gives_what_is_computed_without_it():
    points = make_data(240)
    table = da.from_array(points, chunks=(70, D))
    expected = dc.low_rank(table, 0.6, ridge=0.1, tol=TOL)
    with cluster(2, processes=False):
        held = table.persist()
        found = dc.low_rank(held, 0.6, ridge=0.1, tol=TOL)
        assert_same_bracket(found, expected)
        assert_same_bracket(dc.certify_v(table, expected.V, 0.6, ridge=0.1), expected)
        np.testing.assert_array_equal(kmeans_centered(found.factor), kmeans_centered(expected.F))
        broken = table.map_blocks(lambda block: block[:, :3] if len(block) < 70 else block, dtype=float)
        with pytest.raises(dc.DataError, match="chunk"):
            dc.low_rank(broken, tol=TOL)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_bracket(table):
    penalty = dc.Penalty(ridge=0.1, lam=0.02)
    expected = dc.low_rank(make_data(), 0.6, penalty, tol=TOL)
    with cluster(4) as client:
        workers, killed = list(client.run(os.getpid).values()), []

        def callback(progress):
            if not killed and progress.upper < 1.0:
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        found = dc.low_rank(table, 0.6, penalty, tol=TOL, callback=callback)
        assert killed
        assert workers[0] not in client.run(os.getpid).values()
    assert_same_bracket(found, expected)


@pytest.mark.slow
def test_a_limit_is_kept_while_workers_read_and_a_chunk_that_ends_them_is_said_to_be_lost(table):
    deadly = da.concatenate([table, da.from_delayed(dask.delayed(os._exit)(1), (5, D), float)])
    waiting = da.concatenate([table, da.from_delayed(dask.delayed(time.sleep)(20.0), (5, D), float)])
    with cluster(2):
        started = time.perf_counter()
        assert dc.low_rank(waiting, time_limit=1.0).status is dc.Status.TIME_LIMIT
        assert time.perf_counter() - started < 10.0
        with pytest.raises(dc.ClusterConnectionError, match="KilledWorker"):
            dc.low_rank(deadly, time_limit=120)
