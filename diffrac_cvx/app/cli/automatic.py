"""Options that are a number or "auto", and the choice that "auto" asks for."""

from typing import Annotated, Any, NamedTuple

import typer

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.penalty import suggested_lam

AUTO = "auto"
NUS = (1.0, 0.5)  # that --nu auto chooses from
SHARE = 0.7  # of the time limit, for the choice


def number_or_auto(value: Any) -> Any:
    """Return a number, or the word "auto"."""
    if value == AUTO:
        return AUTO
    try:
        return float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither a number nor 'auto'") from None


def option(*names: str, says: str) -> Any:
    """Return an option that is a number or "auto"."""
    return typer.Option(*names, parser=number_or_auto, metavar="NUMBER|auto", help=says)


Nu = Annotated[Any, option("--nu", says="How strongly equal sizes are preferred, from 0 to 1; start at 1.")]
Ridge = Annotated[Any, option("--ridge", says="How strongly directions of large variance are preferred; start at 0.3.")]
Lambda = Annotated[Any, option("--lambda", "-l", says="How strongly few features are preferred; 0 takes all.")]


def given(value: Any) -> float | None:
    """Return a number that was given; None where it was not, or is to be chosen."""
    return None if value == AUTO else value


def require_two_clusters(count: int, *weights: Any) -> None:
    """Raise where weights are "auto" and something else than one split in two is asked for."""
    if count > 1 and AUTO in weights:
        raise ParameterError("auto chooses for one split in two; give numbers for several labels")


def suggest(n: int, d: int, ridge: float) -> list[str]:
    """Return a note that says which lambda to try where there are more columns than rows, or nothing."""
    lam = suggested_lam(n, d, ridge)
    if d <= n or lam == 0.0:
        return []
    return [
        f"with more columns ({d}) than rows ({n}) an l1 weight finds groups that few columns carry; "
        f"try the same command with --lambda {lam:.2g}"
    ]


class Chosen(NamedTuple):
    """The weights with which the points are clustered, and a sentence where some of them were chosen, else ""."""

    lam: float
    ridge: float
    nu: float
    says: str


def choose(X: Array, lam: Any, ridge: Any, nu: Any, *, seed: int, standardize: bool, seconds: float | None) -> Chosen:
    """Return weights: those given as they are, those that are "auto" chosen by `DiffracClusteringCV` without labels."""
    from diffrac_cvx.estimators.clustering_cv import DiffracClusteringCV

    given = {"lams": lam, "ridges": ridge, "nus": nu}
    if AUTO not in given.values():
        return Chosen(lam, ridge, nu, "")
    grid: dict[str, Any] = {name: (value,) for name, value in given.items() if value != AUTO}
    if nu == AUTO:
        grid["nus"] = NUS
    limit = None if seconds is None else SHARE * seconds
    model = DiffracClusteringCV(**grid, n_resamples=2, standardize=standardize, random_state=seed, time_limit=limit)
    model.fit(X)
    says = (
        f"chosen among {len(model.cv_results_['params'])} settings: lambda {model.lam_:g}, ridge {model.ridge_:g}, "
        f"nu {model.nu_:g}; the split agrees with those of the other settings by {model.best_score_:.2f} (1 at best)"
    )
    return Chosen(model.lam_, model.ridge_, model.nu_, says)
