"""A large dask array on a cluster: the answers of the memory map, in little memory, whatever happens to workers."""

import os
import signal
import time

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.machine.memory import reset_peak_memory, resident_memory

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

N, D, CHUNK = 2_000_000, 50, 50_000
FEW, FEW_COLUMNS = 200_000, 10
TOL = 1e-5
MAX_SECONDS = 120.0  # until an answer or an error after the loss of workers
PENALTIES = {"ridge": dc.Penalty(ridge=0.1), "l1": dc.Penalty(lam=0.02)}


def make_array(n, d):
    """A dask array with two clusters along its first column, made on the workers."""
    noise = da.random.default_rng(0).standard_normal((n, d), chunks=(CHUNK, d))
    second = da.random.default_rng(1).integers(0, 2, (n, 1), chunks=(CHUNK, 1))
    return da.concatenate([noise[:, :1] + 3.0 * second, noise[:, 1:]], axis=1)


@pytest.fixture
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started:
        yield started


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as connected:
        yield connected


def memory_map(table, path):
    """A memory map with the entries of a dask array, which are not in memory at once."""
    file = np.lib.format.open_memmap(path, mode="w+", dtype=table.dtype, shape=table.shape)
    for start in range(0, len(table), CHUNK):
        file[start : start + CHUNK] = table[start : start + CHUNK].compute()
    file.flush()
    return np.load(path, mmap_mode="r")


def added_memory(function, *arguments, **options):
    """Return a function's result and by how much this process grew at most, in bytes."""
    before = reset_peak_memory()
    return function(*arguments, **options), resident_memory("VmHWM") - before


def test_a_large_array_is_solved_as_its_memory_map_and_this_process_stays_small(client, tmp_path):
    table = make_array(N, D).persist()
    mapped, size = memory_map(table, tmp_path / "X.npy"), 8.0 * N * D
    for penalty in PENALTIES.values():
        found, solving = added_memory(dc.low_rank, table, penalty=penalty, tol=TOL)
        expected = dc.low_rank(mapped, penalty=penalty, tol=TOL)
        assert found.gap <= TOL
        np.testing.assert_allclose(found.bracket[:2], expected.bracket[:2], rtol=0.0, atol=TOL)
        bounds, certifying = added_memory(dc.certify_v, table, expected, penalty=penalty)
        np.testing.assert_allclose(bounds[:2], dc.certify_v(mapped, expected, penalty=penalty)[:2], rtol=0.0, atol=1e-9)
        assert max(solving, certifying) < size / 10.0


def kill_workers(client, count):
    for process in list(client.run(os.getpid).values())[:count]:
        os.kill(process, signal.SIGKILL)


def answer_or_error(table, callback):
    try:
        return dc.low_rank(table, ridge=0.1, tol=1e-7, callback=callback)
    except dc.DataError as error:
        return str(error)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("is_persisted", [True, False])
def test_workers_that_are_killed_between_passes_cost_time_and_not_the_answer(client, count, is_persisted):
    table = make_array(FEW, FEW_COLUMNS)
    table = table.persist() if is_persisted else table
    expected, killed, started = dc.low_rank(table, ridge=0.1, tol=1e-7), [], time.monotonic()

    def callback(_):
        if not killed:
            killed.append(kill_workers(client, count))

    found = answer_or_error(table, callback)
    if isinstance(found, str):
        assert "the dask cluster" in found
    else:
        np.testing.assert_allclose(found.bracket[:2], expected.bracket[:2], rtol=0.0, atol=1e-7)
    assert killed
    assert time.monotonic() - started < MAX_SECONDS


@pytest.mark.parametrize(
    ("lose", "message"),
    [(lambda cluster: cluster.scale(0), "has no workers"), (lambda cluster: cluster.close(), "lost X")],
    ids=["workers", "scheduler"],
)
def test_a_cluster_without_workers_or_scheduler_is_an_error_with_the_bounds_so_far(cluster, client, lose, message):
    table, lost, started = make_array(FEW, FEW_COLUMNS).persist(), [], time.monotonic()

    def callback(progress):
        if progress.lower > 0.0 and not lost:
            lost.append(lose(cluster))

    with pytest.raises(dc.DataError, match=f"the dask cluster.*{message}") as error:
        dc.low_rank(table, ridge=0.1, tol=1e-12, callback=callback)
    assert 0.0 < error.value.bracket[0] < error.value.bracket[1] < 1.0
    assert time.monotonic() - started < MAX_SECONDS


def test_a_limit_of_time_ends_a_solve_while_workers_compute(client):
    started = time.monotonic()
    found = dc.low_rank(make_array(N, D), ridge=0.1, tol=1e-12, time_limit=3.0)
    assert time.monotonic() - started < 30.0
    assert found.status is dc.Status.TIME_LIMIT
