"""Calls of all public functions and estimators with one or two arguments of any value, type or shape, from a seed."""

import inspect
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from entrances import MODELS, OPTIONS, N, X, Y, estimators, needed

import diffrac_cvx as dc

LEFT_OUT = {  # no arguments of data or numbers, or files, which have tests of their own
    "load_model", "save_model", "format_lower", "format_upper", "triangles",
}  # fmt: skip
LIMITS = {"tol": 1e-2, "time_limit": 2.0, "max_iter": 200, "n_init": 2, "n_resamples": 2}
CONSTRAINTS = ("must_link", "cannot_link", "labels", "groups", "bags", "order", "sizes", "at_most", "equal", "n_points")


class Bomb:
    """An object that no operation takes."""

    def __repr__(self):
        return "Bomb()"


def values():
    """Return values that few arguments take; each is made again for each call."""
    nan, inf = float("nan"), float("inf")
    return [
        None, True, False, -1, 0, 1, 3, -(10**30), 10**30, 0.5, -0.5, 1e-320, 1e308, -1e308, nan, inf, -inf, 1j,
        "", "low_rank", "nan", b"bytes", [], {}, (), set(), [[]], [nan], [1, 2], ["a", "b"], [[1, 2], [3]], {"a": 1},
        Bomb(), print, range(3), slice(2), Ellipsis, iter([1, 2]),
        np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0)), np.ones(N), -np.ones(N), np.full(N, nan), np.full(N, inf),
        np.ones((N, 1)), np.ones((1, N)), np.ones((N, N)), np.ones((2, N, 3)), np.arange(N), np.arange(N) % 3 - 1,
        X, -X, X[:5], X[:, :2], X * 1e200, X * 1e-200, X.astype(object), X.astype(str), X > 0.0, X * 1j, X.T,
        Y, Y[:5], Y > 0.0, Y.astype(str), np.array(["a", "b"] * 6), np.array([None, 1] * 6, dtype=object),
        np.float32(0.3), np.int8(2), np.bool_(True), np.array(0.5), np.array("x"), np.datetime64("2017-01-01"),
        pd.Series(Y), pd.DataFrame(X), pd.DataFrame(X).astype("Int64").mask(X > 3.0), pd.NA, pd.Timestamp("2017"),
        scipy.sparse.csr_array(X), scipy.sparse.csr_array(X * 1j), np.ma.masked_greater(X, 3.0),
        np.ma.masked_less(Y, 0),
        dc.Penalty(lam=0.1), dc.Penalty(ridge=[0.1, 0.2, 0.3]), dc.Penalty(lam=[0.1] * 5), dc.Constraints(),
        dc.Constraints(must_link=[(0, 40)]), dc.Constraints(labels=[1, -1]), dc.Constraints(sizes=(2, 3)),
        dc.Constraints(cannot_link=[(0, 1)]), np.random.default_rng(0), dc.low_rank(X, tol=0.1), dc.DiffracClustering(),
    ]  # fmt: skip


class Entrance(NamedTuple):
    """A function, valid arguments, and the names of those that may be replaced."""

    function: Any
    given: dict[str, Any]
    names: tuple[str, ...]


def entrance_of(function, given, names=None):
    """Return an entrance with limits that let each valid call end soon."""
    taken = [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) and name != "self"
    ]
    given = {name: value for name, value in LIMITS.items() if name in taken} | given
    return Entrance(function, given, tuple(taken) if names is None else names)


def all_entrances():
    """Return all entrances by name."""
    given = needed() | {"X": X, "F": np.column_stack([Y, np.ones(N)]), "constraints": None}
    given |= {"Y_true": np.outer(Y, Y), "Y_pred": np.outer(Y, Y), "y_true": Y, "y_pred": Y, "labels_true": Y}
    given |= {"labels_pred": Y, "n": 20, "d": 3, "G": np.column_stack([Y, np.ones(N)]), "values": X[:, 0]}
    found = {}
    for module in (dc, dc.baselines, dc.paths, dc.rounding, dc.metrics):
        for name in sorted(getattr(module, "__all__", None) or vars(module)):
            function = getattr(module, name)
            if not inspect.isfunction(function) or name.startswith("_") or name in LEFT_OUT:
                continue
            if not str(function.__module__).startswith("diffrac_cvx.") or name in found:
                continue
            parameters = inspect.signature(function).parameters.values()
            required = [one.name for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
            if module in (dc.baselines, dc.metrics, dc.paths) and function.__module__ != module.__name__:
                continue
            found[name] = entrance_of(
                function, {one: given[one] for one in required if one in given} | OPTIONS.get(name, {})
            )
    found["solve"] = entrance_of(dc.solve, {"relaxation": dc.penalized_nu(X)}, ("relaxation", "solver", *LIMITS))
    found["validate"] = entrance_of(dc.validate, {"solver": dc.low_rank, "n_instances": 1})
    found["make_planted"] = entrance_of(dc.datasets.make_planted, {"n": 20, "d": 3})
    found["load"] = entrance_of(dc.datasets.load, {"name": "heart"})
    found["Penalty"] = entrance_of(dc.Penalty, {})
    found["Constraints"] = entrance_of(lambda **more: dc.Constraints(**more).chunklets_of(N), {}, CONSTRAINTS)
    found["take"] = entrance_of(dc.Constraints(must_link=[(0, 1)], n_points=N).take, {"rows": [0, 1]})
    for name, make in estimators().items():
        known = {"y": np.where(Y > 0.0, "yes", "no")} if name == "DiffracClassifier" else {}
        fitted, parameters = make().fit(X, **known), sorted(make().get_params())
        limits = {one: value for one, value in LIMITS.items() if one in parameters}
        fit = partial(fit_with, getattr(dc, name), known)
        found[name] = Entrance(fit, limits | MODELS.get(name, {}), tuple(parameters))
        found[f"{name}.fit"] = entrance_of(make().fit, {"X": X, **known})
        for method in ("predict", "transform", "score", "decision_function"):
            more = known if method == "score" else {}
            found[f"{name}.{method}"] = entrance_of(getattr(fitted, method), {"X": X, **more})
    return found


def fit_with(kind, known, **parameters):
    """Fit an estimator with these parameters."""
    return kind(**parameters).fit(X, **known)


def hostile_call(every, rng):
    """Return the name of an entrance, and its arguments, of which one or two are replaced, with their names."""
    name = sorted(every)[rng.integers(len(every))]
    entrance, pool = every[name], values()
    replaced = rng.choice(entrance.names, size=min(1 + int(rng.random() < 0.2), len(entrance.names)), replace=False)
    more = {str(one): pool[rng.integers(len(pool))] for one in replaced}
    return name, entrance.given | more, more
