"""``diffrac-cvx cluster``: clusters of the points of a table, with certified bounds."""

import warnings
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx import metrics
from diffrac_cvx.app.cli import automatic, options
from diffrac_cvx.app.cli import constraints as points
from diffrac_cvx.app.cli import features as feature_lists
from diffrac_cvx.app.cli.cluster_report import write_cluster_report
from diffrac_cvx.app.cli.columns import ColumnOptions, GroupsOption, NonnegativeOption
from diffrac_cvx.app.cli.console import Console, ProgressReporter
from diffrac_cvx.app.cli.data import CONSTANT_WARNING, TableSource, with_option
from diffrac_cvx.app.cli.messages import FINISHED_STATUSES, STATUS_MESSAGES, describe_clustering
from diffrac_cvx.app.cli.predict import save_fitted_model
from diffrac_cvx.app.labels import file_table
from diffrac_cvx.comparison.structure import StructureTest
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.points.checks import Array, as_seed
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.linear_algebra import center_columns, column_units
from diffrac_cvx.problem.formatting import sum_rounded_up
from diffrac_cvx.rounding.diagnostics import one_column


@options.with_table_options
def cluster(
    source: TableSource,
    n_clusters: automatic.ClustersOrAuto = 2,
    strategy: Annotated[
        str, typer.Option(help="Strategy for more than two clusters: all 'together', or by repeated two-way 'splits'.")
    ] = "together",
    n_labels: Annotated[
        int, typer.Option(help="Number of binary labels to find for each point, instead of clusters.")
    ] = 1,
    nu: automatic.NuOrAuto = 1.0,
    ridge: automatic.RidgeOrAuto = None,
    a: options.RidgeRoot = None,
    lam: automatic.LambdaOrAuto = None,
    c: options.LambdaRoot = None,
    solver: Annotated[
        str, typer.Option(help="Solver: auto, low_rank, fista, 'fista published', SCS or CLARABEL.")
    ] = "auto",
    known: points.KnownLabelsOption = None,
    unlabelled: points.UnlabelledOption = None,
    must_link_column: points.MustLinkColumnOption = None,
    must_link: points.MustLinkOption = None,
    cannot_link: points.CannotLinkOption = None,
    prove: points.ProveOption = False,
    certificate: points.CertificateOption = None,
    groups: GroupsOption = None,
    nonnegative: NonnegativeOption = None,
    structure: Annotated[bool, typer.Option(help="Test for group structure.")] = True,
    tol: options.Tolerance = options.DEFAULT_TOL,
    time_limit: options.TimeLimit = None,
    no_standardize: options.NoStandardize = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: options.OutFile = None,
    report: options.ReportFile = None,
    save: options.SaveFile = None,
    features: feature_lists.FeaturesFile = None,
) -> None:
    """Find clusters of the points of a table, with a certified bound on the cost of every other partition.

    With 'auto', a parameter is chosen on subsamples; --lambda auto chooses the ridge too unless it is given.  The exit
    status is 1 if there is a warning, or the duality gap exceeds --tol.
    """
    console, seed = Console(as_json, quiet), as_seed(seed, "--seed")
    if n_labels > 1 and n_clusters != 2:
        raise ParameterError("--clusters and --n-labels are both given. Give one of them.")
    automatic.refuse_auto_labels(n_labels, lam, ridge, nu)
    feature_lists.refuse_feature_labels(features, n_labels)
    constraint_options = points.ConstraintOptions(
        known, must_link_column, must_link or (), cannot_link or (), unlabelled
    )
    if n_labels > 1 and (constraint_options.is_given or prove):
        raise ParameterError("constraints on rows and --prove apply to clusters, not to labels. Remove --n-labels.")
    if prove and n_clusters != 2:
        raise ParameterError("--prove supports two clusters only. Remove --clusters.")
    if certificate is not None and not prove:
        raise ParameterError("--certificate is written by the search for the optimal clusters. Add --prove.")
    if nonnegative and (n_labels > 1 or n_clusters != 2):
        which = "--n-labels" if n_labels > 1 else "--clusters"
        raise ParameterError(f"--nonnegative supports two clusters only. Remove {which}.")
    columns = ColumnOptions.given(groups, nonnegative)
    source = replace(source, aside=constraint_options.columns)
    default_ridge = options.DEFAULT_RIDGE if n_labels == 1 else 0.0
    if lam == automatic.AUTO and ridge is None and a is None:
        ridge = automatic.AUTO
    penalty = options.penalty_from_options(
        automatic.number_or_none(lam), c, automatic.number_or_none(ridge), a, default_ridge
    )
    with ProgressReporter(console, time_limit) as progress:
        table = source.load()
        given = constraint_options.read(table)
        known = columns.read(table, has_l1=lam == automatic.AUTO or bool(np.any(penalty.c)))
        progress.update(f"preparing {len(table.X)} points")
        parameters = automatic.choose_parameters(
            table.X, lam if lam == automatic.AUTO else penalty.lam, ridge if ridge == automatic.AUTO else penalty.ridge,
            nu, n_clusters, seed=seed, standardize=not no_standardize, seconds=progress.time_left,
            callback=progress.begin, columns=known,
        )  # fmt: skip
        n_clusters = parameters.n_clusters
        if parameters.message:  # printed now, since a later step may fail
            console.echo(f"{parameters.message}.")
        model, messages = fit_model(
            table, n_labels, n_clusters, progress, given, strategy=strategy, nu=parameters.nu,
            lam=parameters.lam, ridge=parameters.ridge, solver=solver, tol=tol, time_limit=progress.time_left,
            standardize=not no_standardize, random_state=seed, structure=structure, prove=prove, **known,
        )  # fmt: skip
        progress.update("evaluating the clusters")
        if n_labels == 1 and n_clusters == 2 and lam is None and c is None:
            messages += automatic.suggest_lambda(len(table.X), table.X.shape[1], parameters.ridge)
        messages += columns.notes(parameters.lam == 0.0)
        findings = summarize(table, model, messages) | constraint_options.findings(given)
        findings |= {
            "parameters": {"lambda": parameters.lam, "ridge": parameters.ridge, "nu": parameters.nu},
            "choice": parameters.message,
        }
        if prove:
            findings |= points.search_findings(model)
        if certificate is not None:
            points.write_certificate(certificate, model)
        feature_table = None
        if n_labels == 1 and not (report is None and features is None):
            feature_table = feature_lists.feature_table(
                table,
                model,
                with_frequencies=features is not None,
                seconds=progress.time_left,
                seed=seed,
                callback=progress.begin,
            )
        if features is not None and feature_table is not None:
            feature_table.write(features)
        if report is not None:
            progress.update("writing the report")
            used_options = constraint_options if given else None
            write_cluster_report(report, source, table, model, findings, columns, used_options, feature_table)
        if out is not None:
            titles, scores = ("label", "decision", "true"), model.decision_function(table.X)
            content = file_table(titles, table.rows, np.asarray(model.labels_), scores, table.labels, table.points)
            write_csv(out, content.header, content.rows)
        if save is not None:
            findings["notes"] += save_fitted_model(save, model, table)
    for line in describe_clustering(findings):
        console.echo(line)
    has_warnings = bool(findings["diagnostics"]) or not findings["finished"]
    files = (out, report, features, save, certificate)
    console.finish(
        {"file": source.file, **findings}, has_warnings=has_warnings, interrupted=progress.stopped, files=files
    )


def fit_model(
    table: Table,
    n_labels: int,
    n_clusters: int,
    progress: ProgressReporter,
    given: dict[str, Constraints],
    *,
    strategy: str,
    structure: bool,
    prove: bool,
    **parameters: Any,
) -> tuple[Any, list[str]]:
    """Return the fitted estimator and its warnings, except its diagnostics."""
    from diffrac_cvx.estimators import DiffracClustering, MultiLabelDiffrac

    if n_labels == 1:
        kind = {"n_clusters": n_clusters, "strategy": strategy, "test_structure": structure}
        model = DiffracClustering(prove=prove, **kind, **parameters)
    else:
        model = MultiLabelDiffrac(n_labels=n_labels, **parameters)
    model.set_params(verbose=progress.solver_callback("solving"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", CONSTANT_WARNING, DegenerateDataWarning)
        model.fit(table.X, **given)
    model.set_params(verbose=False)
    diagnosed = {str(reason) for reason in getattr(model, "diagnostics_", ())}
    if n_labels == 1:
        named = one_column(table.X, model.labels_, table.names)  # the table has no names for the estimator
        model.diagnostics_ = tuple((one.code == "one column" and named) or one for one in model.diagnostics_)
    messages = [str(one.message) for one in caught if issubclass(one.category, DegenerateDataWarning)]
    return model, [text for text in dict.fromkeys(messages) if text not in diagnosed]


def score_labels(table: Table, labels: Array) -> dict[str, Any]:
    """Return the agreement of the clusters with the reference labels; empty if there are none."""
    from sklearn.metrics import normalized_mutual_info_score

    scores: dict[str, Any] = {}
    for reference in table.references if labels.ndim == 1 else ():
        scores |= {
            "adjusted_rand_score": metrics.adjusted_rand_score(reference, labels),
            "normalized_mutual_information": float(normalized_mutual_info_score(reference, labels)),
            "contingency_matrix": metrics.contingency_matrix(reference, labels)._asdict(),
        }
    if scores and table.y is not None and labels.max() <= 1:
        scores["clustering_error"] = metrics.clustering_error(table.y, 2.0 * labels - 1.0)
        scores["error_of_one_cluster"] = 1.0 - metrics.imbalance(table.y)
    return scores


def summarize(table: Table, model: Any, messages: list[str]) -> dict[str, Any]:
    """Return all findings, for JSON, the terminal and the report."""
    result, labels, gap = model.result_, np.asarray(model.labels_), getattr(model, "label_gap_", None)
    K = getattr(model, "n_clusters", 2)
    return {
        "diagnostics": [vars(reason) for reason in getattr(model, "diagnostics_", ())],
        "structure": structure_findings(getattr(model, "structure_", None)),
        "n": len(table.X),
        "d": table.X.shape[1],
        "notes": [*map(with_option, table.notes), *messages],
        "cost": None if gap is None else sum_rounded_up(model.lower_bound_, gap),
        "lower_bound": model.lower_bound_,
        "upper_bound": model.upper_bound_,
        "label_gap": gap,
        "n_excluded": model.n_excluded_,
        "sizes": np.bincount(labels, minlength=K).tolist() if labels.ndim == 1 else labels.sum(axis=0).tolist(),
        "selected_features": selected_features(table, model),
        "relaxation_selects_all": relaxation_selects_all(table, model),
        "feature_groups": feature_group_findings(model),
        "scaled_coefficients": by_name(table, model.scaled_coef_),
        "coefficients": by_name(table, model.coef_),
        "intercept": model.intercept_,
        "standard_deviations": by_name(table, 1.0 / column_units(center_columns(table.X))),
        **score_labels(table, labels),
        "status": STATUS_MESSAGES.get(result.status, str(result.status)),
        "finished": result.status in FINISHED_STATUSES,
        "tol": model.tol,
        "solver": result.solver,
        "iterations": result.n_iter,
        "seconds": result.seconds,
        "rows": table.rows,
        "labels": labels,
    }


def structure_findings(test: StructureTest | None) -> dict[str, Any] | None:
    """Return the result of the structure test."""
    return None if test is None else {"verdict": test.verdict, "pvalue": test.pvalue, "message": str(test)}


def selected_features(table: Table, model: Any) -> list[str] | None:
    """Return the features with a nonzero coefficient, the most important first.

    None without an l1 penalty, or for more than two clusters.
    """
    if getattr(model, "n_clusters", 0) != 2 or not model._penalty.has_l1:
        return None
    return [table.names[j] for j in sorted(model.support_, key=lambda j: -abs(model.scaled_coef_[j]))]


def feature_group_findings(model: Any) -> dict[str, dict[str, Any]] | None:
    """Return the number of columns of each feature group and the norm of its coefficients per standard deviation.

    None if there are no groups.
    """
    groups = model._penalty.feature_groups(model.n_features_in_)
    if groups.are_single:
        return None
    squares = np.sum(np.atleast_2d(model.scaled_coef_) ** 2, axis=0)
    lengths = np.sqrt(np.bincount(groups.labels, squares, len(groups.names)))
    sizes = groups.sizes.tolist()
    return {name: {"columns": sizes[g], "length": float(lengths[g])} for g, name in enumerate(groups.names)}


def relaxation_selects_all(table: Table, model: Any) -> bool:
    """Whether the solution of the relaxation uses every feature, as a diagonal V does."""
    d = table.X.shape[1]
    return model.result_.G is not None and len(model.result_.features(d)) == d


def by_name(table: Table, values: Array) -> dict[str, list[float]]:
    """Return one or several values per feature, by feature name."""
    return {name: list(row) for name, row in zip(table.names, np.atleast_2d(values).T.tolist(), strict=True)}
