"""Every public function that takes data, in one table, on data that nothing is wrong with."""

import numpy as np
import pytest

import diffrac_cvx as dc

X = np.random.default_rng(0).integers(-4, 5, (8, 3)).astype(float)
V = np.eye(3)
Y = np.where(np.arange(8) < 5, 1.0, -1.0)


def optimum(relaxation):
    return dc.solve(relaxation, "CLARABEL").value


# As functions of X and of keywords; each returns numbers that depend on the data.
TAKES_X = {
    "constrained_alpha": lambda X, alpha=0.2: optimum(dc.constrained_alpha(X, alpha)),
    "penalized_nu": lambda X, nu=0.5, **more: optimum(dc.penalized_nu(X, nu, **more)),
    "lifted": lambda X, nu=0.5, **more: optimum(dc.lifted(X, nu, **more)),
    "v_space": lambda X, nu=0.5, **more: optimum(dc.v_space(X, nu, **more)),
    "v_space_normalized": lambda X, nu=0.5, **more: optimum(dc.v_space_normalized(X, nu, **more)),
    "correlation": lambda X: optimum(dc.correlation(X)),
    "fista": lambda X, nu=0.5, **more: dc.fista(X, nu, **more).V,
    "low_rank": lambda X, nu=0.5, **more: dc.low_rank(X, nu, **more).V,
    "certify_v": lambda X, V=V, nu=0.5, **more: dc.certify_v(X, V, nu, **more),
    "certify_y": lambda X, F=Y[:, None], nu=0.5, **more: dc.certify_y(X, F, nu, **more),
    "certify_labels": lambda X, y=Y, lower=0.0, **more: dc.certify_labels(X, y, lower, **more).objective,
    "alternating_optimisation": lambda X: dc.baselines.alternating_optimisation(X, rng=0),
    "kmeans_whitened": lambda X: dc.baselines.kmeans_whitened(X, rng=0),
    "kmeans_by_column": lambda X: dc.baselines.kmeans_by_column(X),
    "cure": lambda X: dc.baselines.cure(X, rng=0),
    "spectral_kurtosis": lambda X: dc.baselines.spectral_kurtosis(X),
    "refine": lambda X, y=Y: dc.rounding.refine(X, y),
    "squared_correlation": lambda X, y=Y: dc.metrics.squared_correlation(X, y),
}
WITH_NU = [name for name in TAKES_X if name.startswith(("pen", "lift", "v_", "fista", "low", "cert"))]

each = pytest.mark.parametrize("function", TAKES_X.values(), ids=TAKES_X)


def by_name(names):
    return pytest.mark.parametrize("function", [TAKES_X[name] for name in names], ids=names)
