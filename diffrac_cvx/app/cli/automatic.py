"""Options that are a number or "auto", and the choice that "auto" asks for."""

import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.penalty import suggested_lam

AUTO = "auto"
NUS = (1.0, 0.5)  # that --nu auto chooses from
CHOICE_TIME_FRACTION = 0.7  # of the time limit, for the choice
MAX_CHOICE_SECONDS = 60.0  # for the choice, where there is no limit
MAX_CLUSTERS = 8  # that --clusters auto tries
N_RESAMPLES = 2  # of the points, on which the settings are compared
N_RESAMPLES_OF_COUNTS = 6  # on which numbers of clusters are compared


def number_or_auto(value: Any) -> Any:
    """Return a number, or the word "auto"."""
    if value == AUTO:
        return AUTO
    try:
        return float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither a number nor 'auto'") from None


def count_or_auto(value: Any) -> Any:
    """Return a number of clusters, or the word "auto"."""
    if value == AUTO:
        return AUTO
    try:
        count = int(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither a whole number nor 'auto'") from None
    if count < 2:
        raise typer.BadParameter(f"{count} clusters: ask for 2 or more, or for 'auto'")
    return count


def auto_option(*names: str, help_text: str) -> Any:
    """Return an option that is a number or "auto"."""
    return typer.Option(*names, parser=number_or_auto, metavar="NUMBER|auto", help=help_text)


ClustersOrAuto = Annotated[
    Any,
    typer.Option("--clusters", parser=count_or_auto, metavar="NUMBER|auto", help="How many clusters."),
]
NuOrAuto = Annotated[
    Any, auto_option("--nu", help_text="How strongly equal sizes are preferred, from 0 to 1; start at 1.")
]
RidgeOrAuto = Annotated[
    Any, auto_option("--ridge", help_text="How strongly directions of large variance are preferred; start at 0.3.")
]
LambdaOrAuto = Annotated[
    Any,
    auto_option(
        "--lambda",
        "-l",
        help_text="How strongly few features are preferred; 0 takes all. With auto the ridge is chosen too, if not given.",
    ),
]


def number_or_none(value: Any) -> float | None:
    """Return a number that was given; None where it was not, or is to be chosen."""
    return None if value == AUTO else value


def refuse_auto_labels(n_labels: int, *values: Any) -> None:
    """Raise where something is to be chosen and several labels are asked for."""
    if n_labels > 1 and AUTO in values:
        raise ParameterError("auto chooses for clusters, not for labels that are one split in two each; give numbers")


def suggest_lambda(n: int, d: int, ridge: float) -> list[str]:
    """Return a note that says which lambda to try where there are more columns than rows, or nothing."""
    lam = suggested_lam(n, d, ridge)
    if d <= n or lam == 0.0:
        return []
    return [
        f"with more columns ({d}) than rows ({n}) an l1 weight finds groups that few columns carry, and names "
        f"these, though on labelled tables it was no better on the whole; try the same command with --lambda {lam:.2g}"
    ]


class ChosenParameters(NamedTuple):
    """With what the points are clustered, and a sentence where some of it was chosen, else ""."""

    lam: float
    ridge: float
    nu: float
    n_clusters: int
    message: str


def choose_parameters(
    X: Array,
    lam: Any,
    ridge: Any,
    nu: Any,
    n_clusters: Any = 2,
    *,
    seed: int,
    standardize: bool,
    seconds: float | None,
    callback: Callable[[str], object] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> ChosenParameters:
    """Return what was given as it is, and what is "auto" as `DiffracClusteringCV` chooses it without labels.

    ``columns`` are its groups and known signs.  ``callback`` is told what begins, "setting 3 of 9", and ends the search by a
    true return value.
    """
    given = {"lams": lam, "ridges": ridge, "nus": nu}
    if AUTO not in (*given.values(), n_clusters):
        return ChosenParameters(lam, ridge, nu, n_clusters, "")
    from diffrac_cvx.estimators.clustering_cv import DiffracClusteringCV

    grid: dict[str, Any] = {name: (value,) for name, value in given.items() if value != AUTO}
    if nu == AUTO:
        grid["nus"] = NUS
    several = n_clusters == AUTO
    grid["n_clusters"] = range(2, min(MAX_CLUSTERS, len(X) // 2) + 1) if several and len(X) > 5 else n_clusters
    if several and len(X) <= 5:
        raise ParameterError(f"--clusters auto compares halves of the points, and {len(X)} are too few; give a number")
    model = DiffracClusteringCV(
        **grid, n_resamples=N_RESAMPLES_OF_COUNTS if several else N_RESAMPLES, standardize=standardize, random_state=seed,
        time_limit=MAX_CHOICE_SECONDS if seconds is None else CHOICE_TIME_FRACTION * seconds, refit=False, verbose=0 if callback is None else callback,
        **(columns or {}),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the table and of the solver are given with the answer
        model.fit(X)
    return ChosenParameters(
        model.lam_, model.ridge_, model.nu_, model.n_clusters_, describe_choice(model, AUTO in given.values())
    )


def describe_choice(model: Any, weights_chosen: bool) -> str:
    """Return what was chosen, how, and what it was compared with."""
    table, i = model.cv_results_, model.best_index_
    solved, left = len(table["params"]), model.n_settings_ - len(table["params"])
    among = f"{solved} settings" + (f" ({left} more were not reached in time)" if left else "")
    at = f"lambda {model.lam_:.6g}, ridge {model.ridge_:g}, nu {model.nu_:g}"
    lines = []
    if len(set(table["param_n_clusters"])) > 1:
        lines.append(describe_count(table, model.n_clusters_))
    if weights_chosen:
        same = np.flatnonzero(table["param_n_clusters"] == model.n_clusters_)
        before, after = (table["separation"][j] for j in (same[0], i))
        if i == same[0]:
            why = f"none of {among} separates points left out clearly better"
            if np.isnan(before):
                why = f"the time did not suffice to compare the {model.n_settings_} settings on halves of the points"
            lines.append(f"auto keeps the usual weights, {at}: {why}")
        else:
            lines.append(
                f"chosen among {among}: {at}; on points left out the groups are separated better, {after:.2f} where "
                f"the usual weights give {before:.2f} (0.64 is what points without groups give, 1 is best)"
            )
    return ". ".join(lines)


def describe_count(table: dict[str, Any], chosen: int) -> str:
    """Return how well halves of the points find the clusters of each other, for each number of clusters."""
    from diffrac_cvx.estimators.choice import MIN_STABILITY, best_by_count

    strengths = {
        count: table["prediction_strength"][i] for count, i in best_by_count(table, table["rank_score"]).items()
    }
    known = {count: value for count, value in strengths.items() if np.isfinite(value)}
    if not known:
        return f"{chosen} clusters: the time did not suffice to compare numbers of clusters on halves of the points"
    rule = f"of the numbers that halves of the points find alike ({MIN_STABILITY:g} or more) it is the largest"
    if max(known.values()) < MIN_STABILITY:
        rule = f"halves of the points find no number alike ({MIN_STABILITY:g} or more), and this one comes nearest"
    values = ", ".join(f"{count}: {value:.2f}" for count, value in known.items())
    return f"{chosen} clusters: {rule} ({values}); whether there is more than one is another question"
