"""Options that are a number or "auto", and the parameter selection for "auto"."""

import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from diffrac_cvx.app.cli import options
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.penalty import suggested_lam

AUTO = "auto"
NUS = (1.0, 0.5)  # candidates of --nu auto
CHOICE_TIME_FRACTION = 0.7  # of the time limit, for the selection
MAX_CHOICE_SECONDS = 60.0  # for the selection, without a time limit
MAX_CLUSTERS = 8  # largest candidate of --clusters auto
N_RESAMPLES = 2  # half-samples to compare settings
N_RESAMPLES_OF_COUNTS = 6  # half-samples to compare numbers of clusters


def number_or_auto(value: Any) -> Any:
    """Return a number or "auto"."""
    if value == AUTO:
        return AUTO
    try:
        return float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither a number nor 'auto'") from None


def count_or_auto(value: Any) -> Any:
    """Return a number of clusters or "auto"."""
    if value == AUTO:
        return AUTO
    try:
        count = int(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither an integer nor 'auto'") from None
    if count < 2:
        raise typer.BadParameter(f"{count} clusters are too few. Give 2 or more, or 'auto'.")
    return count


def auto_option(*names: str, help_text: str, **settings: Any) -> Any:
    """Return an option that is a number or "auto"."""
    return typer.Option(*names, parser=number_or_auto, metavar="NUMBER|auto", help=help_text, **settings)


ClustersOrAuto = Annotated[
    Any,
    typer.Option("--clusters", parser=count_or_auto, metavar="NUMBER|auto", help="Number of clusters."),
]
NuOrAuto = Annotated[Any, auto_option("--nu", help_text=options.NU_HELP)]
RidgeOrAuto = Annotated[
    Any,
    auto_option("--ridge", help_text=options.RIDGE_HELP, show_default=f"{options.RIDGE_DEFAULT}, or 0 with --n-labels"),
]
LambdaOrAuto = Annotated[
    Any,
    auto_option("--lambda", "-l", help_text=options.LAMBDA_HELP, show_default=options.LAMBDA_DEFAULT),
]


def number_or_none(value: Any) -> float | None:
    """Return the given number; None if it was not given or is "auto"."""
    return None if value == AUTO else value


def refuse_auto_labels(n_labels: int, *values: Any) -> None:
    """Raise if a parameter is "auto" and there are several labels."""
    if n_labels > 1 and AUTO in values:
        raise ParameterError(
            "auto applies to clusters, not to --n-labels. Give numbers for --lambda, --ridge and --nu."
        )


def suggest_lambda(n: int, d: int, ridge: float) -> list[str]:
    """Return a note that suggests a lambda if there are more columns than rows."""
    lam = suggested_lam(n, d, ridge)
    if d <= n or lam == 0.0:
        return []
    return [
        f"with more columns ({d}) than rows ({n}), an l1 penalty finds clusters that depend on few columns, and "
        f"selects these; on labelled tables it was not better overall; try the same command with --lambda {lam:.2g}"
    ]


class ChosenParameters(NamedTuple):
    """Parameters of the clustering, and a message on those that were selected, else ""."""

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
    """Return the given parameters, with those that are "auto" selected by `DiffracClusteringCV`, without labels.

    ``columns`` are its feature groups and sign constraints.  ``callback`` receives each step, such as "setting 3 of 9",
    and stops the search by returning true.
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
        raise ParameterError(f"--clusters auto needs at least 6 points, not {len(X)}. Give a number.")
    model = DiffracClusteringCV(
        **grid, n_resamples=N_RESAMPLES_OF_COUNTS if several else N_RESAMPLES, standardize=standardize,
        random_state=seed, time_limit=MAX_CHOICE_SECONDS if seconds is None else CHOICE_TIME_FRACTION * seconds,
        refit=False, verbose=0 if callback is None else callback, **(columns or {}),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the final fit repeats those of the table and of the solver
        model.fit(X)
    return ChosenParameters(
        model.lam_, model.ridge_, model.nu_, model.n_clusters_, describe_choice(model, AUTO in given.values())
    )


def describe_choice(model: Any, weights_chosen: bool) -> str:
    """Return a message on the selected parameters and on the settings they were compared with."""
    table, i = model.cv_results_, model.best_index_
    solved, left = len(table["params"]), model.n_settings_ - len(table["params"])
    among = f"{solved} settings" + (f" ({left} more were not reached within the time limit)" if left else "")
    at = f"lambda {model.lam_:.6g}, ridge {model.ridge_:g}, nu {model.nu_:g}"
    lines = []
    if len(set(table["param_n_clusters"])) > 1:
        lines.append(describe_count(table, model.n_clusters_))
    if weights_chosen:
        same = np.flatnonzero(table["param_n_clusters"] == model.n_clusters_)
        before, after = (table["separation"][j] for j in (same[0], i))
        if i == same[0]:
            why = f"none of {among} separates held-out points clearly better"
            if np.isnan(before):
                why = f"there was no time to compare the {model.n_settings_} settings on half-samples"
            lines.append(f"auto keeps the defaults, {at}: {why}")
        else:
            lines.append(
                f"selected among {among}: {at}; it separates held-out points better, with a score of {after:.2f} "
                f"compared with {before:.2f} for the defaults (0.64 for points without clusters, 1 at best)"
            )
    return ". ".join(lines)


def describe_count(table: dict[str, Any], chosen: int) -> str:
    """Return a message on the prediction strength across half-samples, for each number of clusters."""
    from diffrac_cvx.estimators.choice import MIN_STABILITY, best_by_count

    strengths = {
        count: table["prediction_strength"][i] for count, i in best_by_count(table, table["rank_score"]).items()
    }
    known = {count: value for count, value in strengths.items() if np.isfinite(value)}
    if not known:
        return f"{chosen} clusters: there was no time to compare numbers of clusters on half-samples"
    rule = f"the largest number with a prediction strength across half-samples of {MIN_STABILITY:g} or more"
    if max(known.values()) < MIN_STABILITY:
        rule = (
            f"no number has a prediction strength across half-samples of {MIN_STABILITY:g} or more; this is the closest"
        )
    values = ", ".join(f"{count}: {value:.2f}" for count, value in known.items())
    return f"{chosen} clusters: {rule} ({values}); this does not test whether there is more than one cluster"
