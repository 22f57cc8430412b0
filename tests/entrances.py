"""Public functions and methods that take a table, by name, each as a function of the table alone."""

import inspect
from functools import partial

import numpy as np

import diffrac_cvx as dc

N, D = 12, 3
X = np.random.default_rng(0).integers(-3, 4, (N, D)).astype(float)
X[: N // 2, 0] += 7.0
Y = np.where(np.arange(N) < N // 2, 1.0, -1.0)
OPTIONS = {
    "compare": {"methods": ["low_rank"]},
    "gaussian_mixture": {"n_init": 1},
    "sparse_kmeans": {"n_init": 1, "bound": 1.3},
}
MODELS = {
    "DiffracClassifier": {"ridge": 0.3, "labeled_weight": 0.0},
    "DiffracClusteringCV": {"ridges": (0.3,), "lams": (0.0,), "n_resamples": 2, "random_state": 0},
    "MultiLabelDiffrac": {"random_state": 0},
}


def is_own(function, module):
    return getattr(function, "__module__", "") == module.__name__ and not function.__name__.startswith("_")


def functions_of(first):
    """Return the public functions whose first parameter has this name, by name."""
    found = {}
    for module in (dc, dc.baselines, dc.paths, dc.plotting, dc.rounding, dc.metrics):
        names = getattr(module, "__all__", None) or [n for n, f in vars(module).items() if is_own(f, module)]
        for name in names:
            function = getattr(module, name)
            if inspect.isfunction(function) and next(iter(inspect.signature(function).parameters), "") == first:
                found[name] = function
    return found


def needed():
    """Return values of the other required arguments, by name."""
    best = dc.optimal_labels(X, ridge=0.1, tol=1e-2)
    return {
        "y": Y, "labels": (Y > 0.0).astype(int), "lower": 0.0, "alpha": 0.3, "k": 2, "n_clusters": 2, "rng": 0,
        "V": np.eye(D), "Y_or_F": Y[:, None], "nus": [0.5, 1.0], "lams": [0.1, 0.3], "certificate": best.certificate,
    }  # fmt: skip


def with_arguments(function, given, options):
    """Return a function of the table, with its other required arguments, and the names of all its parameters."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    required = [one.name for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    return partial(function, **{name: given[name] for name in required} | options)


def estimators():
    """Return the public estimators that are not fitted, by name."""
    classes = {name: getattr(dc, name) for name in dir(dc) if hasattr(getattr(dc, name), "fit")}
    return {name: partial(one, **MODELS.get(name, {})) for name, one in classes.items()}


def entrances():
    """Return all functions, and methods of estimators, that take a table, by name, as functions of the table."""
    given = needed()
    found = {
        name: with_arguments(function, given, OPTIONS.get(name, {})) for name, function in functions_of("X").items()
    }
    for name, make in estimators().items():
        known = {"y": np.where(Y > 0.0, "yes", "no")} if name == "DiffracClassifier" else {}
        fitted = make().fit(X, **known)
        for method in sorted(name for name in dir(fitted) if not name.startswith("_")):
            function = getattr(fitted, method)
            if not (inspect.ismethod(function) and "X" in inspect.signature(function).parameters):
                continue
            if method.startswith("fit"):
                found[f"{name}.{method}"] = lambda X, make=make, method=method, known=known: getattr(make(), method)(
                    X, **known
                )
            else:
                found[f"{name}.{method}"] = partial(function, **known) if method == "score" else function
    return found
