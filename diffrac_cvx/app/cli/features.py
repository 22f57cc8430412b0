"""Table of features: weights, selection frequencies and marginal gains."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.points.checks import Array

N_FREQUENCY_RESAMPLES = 10  # half-samples for the selection frequencies
GAINS_TIME_FRACTION = 0.5  # of the time left, for the marginal gains; the rest is for the frequencies
MAX_SECONDS, MAX_SECONDS_FOR_REPORT = 60.0, 10.0  # for each of the two, without a time limit
FeaturesFile = Annotated[
    Path | None,
    typer.Option(help="CSV file for the ranked features: weight, selection frequency, cost increase if removed."),
]


class FeatureTable(NamedTuple):
    """Statistics of each feature, (d,) or (d, K); NaN if there was no time to compute one."""

    names: tuple[str, ...]
    weights: Array  # (d, K): per standard deviation, a column per decision function
    gains: Array  # (d,): increase of the cost if the feature, or its group, is removed and the labels stay
    frequencies: Array | None  # (d,): fraction of half-samples that select it; None without an l1 penalty
    groups: tuple[str, ...] = ()  # (d,): names of the feature groups, if they have several features

    @property
    def order(self) -> list[int]:
        """Features by decreasing largest weight."""
        return [int(j) for j in np.argsort(-np.abs(self.weights).max(axis=1), kind="stable")]

    def write(self, path: Path) -> None:
        """Write the CSV file, the largest weight first."""
        K = self.weights.shape[1]
        heads = ["weight"] if K == 1 else [f"weight_{k}" for k in range(K)]
        seldom = [] if self.frequencies is None else ["selection_frequency"]
        rows = []
        for j in self.order:
            often = [] if self.frequencies is None else [self.frequencies[j]]
            known = [*self.weights[j], *often, self.gains[j]]
            group = [self.groups[j]] if self.groups else []
            rows.append([self.names[j], *group, *("" if np.isnan(value) else float(value) for value in known)])
        named, gain = (["group"], "marginal_gain_of_group") if self.groups else ([], "marginal_gain")
        write_csv(path, ["feature", *named, *heads, *seldom, gain], rows)


def refuse_feature_labels(features: Path | None, n_labels: int) -> None:
    """Raise if a feature table is requested for several labels."""
    if features is not None and n_labels > 1:
        raise ParameterError("--features applies to clusters, not to labels. Remove --n-labels.")


def feature_table(
    table: Table,
    model: Any,
    *,
    with_frequencies: bool,
    seconds: float | None,
    seed: int,
    callback: Callable[[str], object],
) -> FeatureTable:
    """Return the feature table of a fitted `DiffracClustering`, on request with selection frequencies."""
    from diffrac_cvx.estimators.clustering_cv import DiffracClusteringCV
    from diffrac_cvx.estimators.marginal_gains import marginal_gains

    points, max_seconds = (
        model._scale(table.X, warn=False).X,
        MAX_SECONDS if with_frequencies else MAX_SECONDS_FOR_REPORT,
    )
    limit = max_seconds if seconds is None else min(GAINS_TIME_FRACTION * seconds, max_seconds)
    groups = model._penalty.feature_groups(points.shape[1])
    callback(f"removing one {'feature' if groups.are_single else 'feature group'} at a time")
    gains = marginal_gains(points, model.labels_, model._penalty, model.n_clusters, time_limit=limit)
    gains = gains[groups.labels]
    frequencies = None
    if with_frequencies and model._penalty.has_l1:
        grid: dict[str, Any] = {name: (getattr(model, name[:-1]),) for name in ("lams", "ridges", "nus")}
        search = DiffracClusteringCV(
            **grid, n_clusters=model.n_clusters, n_resamples=N_FREQUENCY_RESAMPLES, tol=model.tol,
            standardize=model.standardize, random_state=seed, time_limit=limit, refit=False, verbose=callback,
            groups=model.groups, group_weights=model.group_weights, nonnegative=model.nonnegative,
        )  # fmt: skip
        frequencies = search.fit(table.X).selection_frequencies_
    group_names = () if groups.are_single else tuple(groups.names[g] for g in groups.labels)
    return FeatureTable(tuple(table.names), np.atleast_2d(model.scaled_coef_).T, gains, frequencies, group_names)
