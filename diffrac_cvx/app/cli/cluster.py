"""``diffrac-cvx cluster``: clusters of the points of a table, with what is proved about them."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx import metrics
from diffrac_cvx.app.cli import automatic, options
from diffrac_cvx.app.cli import features as feature_lists
from diffrac_cvx.app.cli import known as points
from diffrac_cvx.app.cli.cluster_report import write_report
from diffrac_cvx.app.cli.columns import Columns, GroupsOption, NonnegativeOption
from diffrac_cvx.app.cli.console import Console, Watch
from diffrac_cvx.app.cli.data import CONSTANT, Source, with_option
from diffrac_cvx.app.cli.predict import save_model
from diffrac_cvx.app.cli.words import FINE, STATUSES, sentences
from diffrac_cvx.app.labels import file_table
from diffrac_cvx.comparison.structure import StructureTest, worth_saying
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.points.checks import Array, as_seed
from diffrac_cvx.points.linear_algebra import standardise
from diffrac_cvx.points.links import Links
from diffrac_cvx.problem.proved_numbers import sum_of
from diffrac_cvx.rounding.caveats import with_names


@options.reads_a_table
def cluster(
    source: Source,
    n_clusters: automatic.Clusters = 2,
    strategy: Annotated[
        str, typer.Option(help="More than two clusters: all 'together', or by repeated 'splits' in two.")
    ] = "together",
    labels_count: Annotated[
        int, typer.Option(help="Find this many labels of every point, each a split in two, instead of clusters.")
    ] = 1,
    nu: automatic.Nu = 1.0,
    ridge: automatic.Ridge = None,
    a: options.RidgeRoot = None,
    lam: automatic.Lambda = None,
    c: options.LambdaRoot = None,
    solver: Annotated[
        str, typer.Option(help="How it is computed: auto, low_rank, fista, 'fista published', SCS or CLARABEL.")
    ] = "auto",
    refine: Annotated[
        bool, typer.Option("--refine", help="Repeat direction and split in turn until nothing changes.")
    ] = False,
    known: points.Known = None,
    group: points.Group = None,
    together: points.Together = None,
    apart: points.Apart = None,
    prove: points.Prove = False,
    groups: GroupsOption = None,
    nonnegative: NonnegativeOption = None,
    structure: Annotated[
        bool, typer.Option(help="Test whether there is a structure at all, in two seconds at most.")
    ] = True,
    tol: options.Tolerance = options.TOL,
    time_limit: options.Seconds = None,
    no_standardize: options.Raw = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: options.Out = None,
    report: options.Report = None,
    save: options.Save = None,
    features: feature_lists.Features = None,
) -> None:
    """Split the points of a table into two groups along a direction, or into more, and prove how good the split is.

    The exit status is 1 where the split is no answer, or the proof is less exact than --tol.
    """
    console, seed = Console(as_json, quiet), as_seed(seed, "--seed")
    if labels_count > 1 and n_clusters != 2:
        raise ParameterError("give --clusters or --labels-count, not both")
    automatic.refuse_labels(labels_count, lam, ridge, nu)
    feature_lists.refuse_labels(features, labels_count)
    given = points.Given(known, group, together or (), apart or ())
    if labels_count > 1 and (given.says_something or prove):
        raise ParameterError("what is known of points, and --prove, are about clusters: leave --labels-count out")
    if prove and n_clusters != 2:
        raise ParameterError("--prove is about two clusters: leave --clusters out")
    if nonnegative and (labels_count > 1 or n_clusters != 2):
        which = "--labels-count" if labels_count > 1 else "--clusters"
        raise ParameterError(f"--nonnegative says the signs of one direction, which splits in two: leave {which} out")
    columns = Columns.given(groups, nonnegative)
    source = replace(source, aside=given.columns)
    usual = options.RIDGE if labels_count == 1 else 0.0
    if lam == automatic.AUTO and ridge is None and a is None:
        ridge = automatic.AUTO
    penalty = options.penalty_of(automatic.given(lam), c, automatic.given(ridge), a, usual)
    with Watch(console, time_limit) as watch:
        table = source.load()
        links = given.links(table)
        known = columns.read(table, coupled=lam == automatic.AUTO or bool(np.any(penalty.c)))
        watch.say(f"preparing {len(table.X)} points")
        chosen = automatic.choose(
            table.X, lam if lam == automatic.AUTO else penalty.lam, ridge if ridge == automatic.AUTO else penalty.ridge,
            nu, n_clusters, seed=seed, standardize=not no_standardize, seconds=watch.left, say=watch.begin,
            columns=known,
        )  # fmt: skip
        n_clusters = chosen.n_clusters
        if chosen.says:  # said now, whatever happens to what follows
            console.say(f"{chosen.says}.")
        model, warned = fit_model(
            table, labels_count, n_clusters, watch, links, strategy=strategy, refine=refine, nu=chosen.nu,
            lam=chosen.lam, ridge=chosen.ridge, solver=solver, tol=tol, time_limit=watch.left,
            standardize=not no_standardize, random_state=seed, structure=structure, **known,
        )  # fmt: skip
        search = points.prove(table, model, links, watch) if prove and not watch.stopped else None
        watch.say("judging what was found")
        if labels_count == 1 and n_clusters == 2 and lam is None and c is None:
            warned += automatic.suggest(len(table.X), table.X.shape[1], chosen.ridge)
        warned += columns.notes(chosen.lam == 0.0)
        findings = summarise(table, model, warned) | points.findings_of(links)
        findings |= {"weights": {"lambda": chosen.lam, "ridge": chosen.ridge, "nu": chosen.nu}, "choice": chosen.says}
        if search is not None:
            findings |= points.words_of_search(findings, search)
        listed = None
        if labels_count == 1 and not (report is None and features is None):
            listed = feature_lists.feature_table(
                table, model, halves=features is not None, seconds=watch.left, seed=seed, say=watch.begin
            )
        if features is not None and listed is not None:
            listed.write(features)
        if report is not None:
            watch.say("writing the report")
            asked = given if links is not None else None
            write_report(report, source, table, model, findings, columns, asked, listed)
        if out is not None:
            titles, scores = ("label", "decision", "true"), model.decision_function(table.X)
            content = file_table(titles, table.rows, np.asarray(model.labels_), scores, table.labels, table.points)
            write_csv(out, content.head, content.rows)
        if save is not None:
            findings["notes"] += save_model(save, model, table)
    for line in sentences(findings):
        console.say(line)
    reserved = bool(findings["reservations"]) or not findings["finished"]
    files = (out, report, features, save)
    console.end({"file": source.file, **findings}, reserved=reserved, stopped=watch.stopped, files=files)


def fit_model(
    table: Table,
    labels_count: int,
    n_clusters: int,
    watch: Watch,
    links: Links | None,
    *,
    strategy: str,
    refine: bool,
    structure: bool,
    **parameters: Any,
) -> tuple[Any, list[str]]:
    """Return a fitted estimator, of clusters or of several labels, and what it warned of beside its reservations."""
    from diffrac_cvx.estimators import DiffracClustering, MultiLabelDiffrac

    if labels_count == 1:
        kind = {"n_clusters": n_clusters, "strategy": strategy, "refine": refine, "test_structure": structure}
        model = DiffracClustering(**kind, **parameters)
    else:
        model = MultiLabelDiffrac(labels_count, **parameters)
    model.set_params(verbose=watch.solver("searching"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", CONSTANT, DegenerateDataWarning)
        model.fit(table.X, **({} if links is None else {"links": links}))
    model.set_params(verbose=False)
    known = {str(reason) for reason in getattr(model, "reservations_", ())}
    if labels_count == 1:
        model.reservations_ = with_names(model.reservations_, table.X, model.labels_, table.names)
    found = [str(one.message) for one in caught if issubclass(one.category, DegenerateDataWarning)]
    return model, [text for text in dict.fromkeys(found) if text not in known]


def score_labels(table: Table, labels: Array) -> dict[str, Any]:
    """Return how well the clusters found agree with the true labels, where there are any."""
    if table.labels is None or labels.ndim > 1:
        return {}
    from sklearn.metrics import normalized_mutual_info_score

    counts = metrics.crosstab(table.labels, labels)
    scores = {
        "adjusted_rand_index": metrics.adjusted_rand_index(table.labels, labels),
        "normalized_mutual_information": float(normalized_mutual_info_score(table.labels, labels)),
        "crosstab": counts._asdict(),
    }
    if table.y is not None and labels.max() <= 1:
        scores["clustering_error"] = metrics.clustering_error(table.y, 2.0 * labels - 1.0)
        scores["error_of_one_cluster"] = 1.0 - metrics.imbalance(table.y)
    return scores


def summarise(table: Table, model: Any, warned: list[str]) -> dict[str, Any]:
    """Return all that is found, for JSON, for print and for the report."""
    result, labels, gap = model.result_, np.asarray(model.labels_), getattr(model, "label_gap_", None)
    K = getattr(model, "n_clusters", 2)
    return {
        "reservations": [vars(reason) for reason in getattr(model, "reservations_", ())],
        "structure": structures_of(getattr(model, "structure_", ())),
        "n": len(table.X),
        "d": table.X.shape[1],
        "notes": [*map(with_option, table.notes), *warned],
        "cost": None if gap is None else sum_of(model.lower_bound_, gap),
        "lower_bound": model.lower_bound_,
        "upper_bound": model.upper_bound_,
        "label_gap": gap,
        "n_excluded": model.n_excluded_,
        "sizes": np.bincount(labels, minlength=K).tolist() if labels.ndim == 1 else labels.sum(axis=0).tolist(),
        "features_in_use": features_in_use(table, model),
        "relaxation_uses_all": uses_all(table, model),
        "groups": groups_of(model),
        "scaled_coefficients": by_name(table, model.scaled_coef_),
        "coefficients": by_name(table, model.coef_),
        "intercept": model.intercept_,
        "deviations": by_name(table, 1.0 / standardise(table.X).unit),
        **score_labels(table, labels),
        "status": STATUSES.get(result.status, str(result.status)),
        "finished": result.status in FINE,
        "tol": model.tol,
        "solver": result.solver,
        "iterations": result.n_iter,
        "seconds": result.seconds,
        "rows": table.rows,
        "labels": labels,
    }


def structures_of(tests: Sequence[StructureTest]) -> list[dict[str, Any]]:
    """Return what the tests of structure found, and which of them are worth saying."""
    told = worth_saying(tests)
    return [
        {"null": test.null, "p_value": test.p_value, "as_good": test.as_good, "draws": len(test.null_values),
         "says": str(test), "told": test in told}
        for test in tests
    ]  # fmt: skip


def features_in_use(table: Table, model: Any) -> list[str] | None:
    """Return the names of the features in use, the first first; None where no l1 weight chose them for two clusters.

    They are those of the direction found, whose other coefficients are 0.
    """
    if getattr(model, "n_clusters", 0) != 2 or not model._penalty.is_coupled:
        return None
    return [table.names[j] for j in sorted(model.support_, key=lambda j: -abs(model.scaled_coef_[j]))]


def groups_of(model: Any) -> dict[str, dict[str, Any]] | None:
    """Return the columns of each group, how many they are, and the length of their coefficients per standard deviation.

    None where there are no groups.
    """
    groups = model._penalty.groups
    if groups is None:
        return None
    squares = np.sum(np.atleast_2d(model.scaled_coef_) ** 2, axis=0)
    lengths = np.sqrt(np.bincount(groups.labels, squares, len(groups.names)))
    sizes = groups.sizes.tolist()
    return {name: {"columns": sizes[g], "length": float(lengths[g])} for g, name in enumerate(groups.names)}


def uses_all(table: Table, model: Any) -> bool:
    """Whether the solution of the relaxation leaves no feature out, as where its V is diagonal."""
    d = table.X.shape[1]
    return model.result_.G is not None and len(model.result_.features(d).used) == d


def by_name(table: Table, values: Array) -> dict[str, list[float]]:
    """Return values of the features, one or several each, by the name of the feature."""
    return {name: list(row) for name, row in zip(table.names, np.atleast_2d(values).T.tolist(), strict=True)}
