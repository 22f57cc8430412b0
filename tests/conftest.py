import os
from pathlib import Path

import numpy as np
import pytest

REFERENCE_COPIES = Path(__file__).parents[2] / "shared" / "data"
if REFERENCE_COPIES.is_dir():
    os.environ.setdefault("DIFFRAC_DATA_HOME", str(REFERENCE_COPIES))


@pytest.fixture(scope="session")
def noisy():
    """Centred data of order one without a structure that any relaxation could see, n = 12, d = 3."""
    X = np.random.default_rng(2017).standard_normal((12, 3)) @ np.diag([1.0, 0.5, 2.0])
    return X - X.mean(axis=0)
