"""Unreadable streamed tables raise clear errors promptly, never give a wrong result, and respect the limits."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from messages import TALL as X
from messages import D, chunked

import diffrac_cvx as dc
from diffrac_cvx.points.reading import as_rows


def test_an_error_of_the_package_is_not_said_to_be_one_of_the_data():
    def fail(part):
        raise KeyError(len(part))

    with pytest.raises(KeyError):
        as_rows(chunked(X)).map_parts(fail)


# Limits


def slow(seconds, n=30_000, parts=30, wait=time.sleep):
    """Return a table of chunks that load slowly."""
    points = np.random.default_rng(0).standard_normal((n, D))
    size = n // parts

    def load(first):
        wait(seconds)
        return points[first : first + size]

    return da.concatenate([da.from_delayed(dask.delayed(load)(i), (size, D), float) for i in range(0, n, size)])


@pytest.mark.parametrize(
    ("seconds", "parts"),
    [(0.1, 30), pytest.param(60.0, 1, marks=pytest.mark.slow)],
    ids=["many chunks", "one slow chunk"],
)
def test_a_limit_of_a_second_is_kept_while_a_table_is_read(seconds, parts):
    ended = threading.Event()
    started = time.perf_counter()
    try:
        result = dc.low_rank(slow(seconds, parts=parts, wait=ended.wait), time_limit=1.0)
        assert time.perf_counter() - started < 15.0
    finally:
        ended.set()  # otherwise the test would wait for the reading thread
    assert result.status is dc.Status.TIME_LIMIT
    assert 0.0 <= result.lower <= result.upper <= 1.0


def test_ctrl_c_leaves_the_reading_at_once():
    ended = threading.Event()
    timer = threading.Timer(0.6, signal.raise_signal, (signal.SIGINT,))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes of a shell ignore it
    timer.start()
    started = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            dc.low_rank(slow(2.0, wait=ended.wait))
    finally:
        timer.cancel()
        ended.set()
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - started < 15.0  # all chunks would take a minute


# Without dask


HIDDEN = """
import sys
import dask.array as da
import numpy as np
table = da.zeros((10, 2), chunks=(5, 2))
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("dask", "distributed"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
for name in [name for name in sys.modules if name.partition(".")[0] in ("dask", "distributed")]:
    del sys.modules[name]
sys.meta_path.insert(0, Hide())
import diffrac_cvx as dc
points = np.random.default_rng(0).standard_normal((40, 2))
print(dc.low_rank(points).status)
print(dc.DiffracClustering().fit(points).labels_.shape)
for function in (dc.low_rank, dc.fista, dc.DiffracClustering().fit, lambda X: dc.certify_v(X, np.eye(2))):
    try:
        function(table)
    except dc.ParameterError as error:
        print(error)
"""


def test_without_dask_all_but_its_arrays_works_and_these_say_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN], capture_output=True, text=True, cwd=Path(dc.__file__).parents[1], timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(dc.Status.OPTIMAL), "(40,)"] + 4 * [
        "X is a dask array, but dask is not installed. Run pip install 'diffrac-cvx[scale]'."
    ]
