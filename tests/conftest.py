import gc
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from forms import FORMS, LEFT_TO_SLOW_TESTS, Form
from instances import coarsen

from diffrac_cvx.points import reading
from diffrac_cvx.solvers.exact import portfolio
from diffrac_cvx.solvers.factored import sampling

REFERENCE_COPIES = Path(__file__).parents[2] / "shared" / "data"
if REFERENCE_COPIES.is_dir():
    os.environ.setdefault("DIFFRAC_DATA_HOME", str(REFERENCE_COPIES))


def pytest_collection_finish():
    """The modules and tests that there are now stay: to look through them for garbage takes a tenth of the time."""
    gc.freeze()


@pytest.fixture(scope="session")
def noisy():
    """Centred data of order one without a structure that any relaxation could see, n = 12, d = 3."""
    X = np.random.default_rng(2017).standard_normal((12, 3)) @ np.diag([1.0, 0.5, 2.0])
    return X - X.mean(axis=0)


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.slow] if name in LEFT_TO_SLOW_TESTS else []) for name in FORMS]
)
def form(request, tmp_path):
    """A function that gives an array as a table in one of the forms in which users hold theirs."""
    return Form(request.param, tmp_path)


@pytest.fixture
def coarse(monkeypatch):
    """Function that makes the unit of rounding coarse, so that each error term is large, from when it is called."""
    return partial(coarsen, monkeypatch)


@pytest.fixture
def cuts_first(monkeypatch):
    """No work for branch and bound before the cutting planes."""
    monkeypatch.setattr(portfolio, "TREE_WORK", 0.0)
    monkeypatch.setattr(portfolio, "MORE_WORK", 0.0)


@pytest.fixture
def sample_small_tables(monkeypatch):
    """Fifty rows are a sample and a hundred are many, so that small tables take the way of large ones."""
    monkeypatch.setattr(reading, "MIN_ROWS", 100)
    monkeypatch.setattr(sampling, "MIN_SAMPLE_ROWS", 50)
