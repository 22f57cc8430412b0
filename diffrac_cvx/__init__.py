"""Convex relaxations for discriminative clustering with sparse regularisers."""

from importlib import import_module
from typing import Any

from diffrac_cvx import baselines, datasets, metrics, paths, plotting, registry, rounding
from diffrac_cvx.certificates import (
    ClustersCertificate,
    LabelCertificate,
    certify_clusters,
    certify_labels,
    certify_v,
    certify_y,
    find_components,
)
from diffrac_cvx.comparison import Comparison, compare
from diffrac_cvx.errors import (
    ContradictionError,
    DataError,
    DegenerateDataWarning,
    LostError,
    ParameterError,
    ResourceError,
)
from diffrac_cvx.points.links import Links
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Bracket, DimacsErrors, Progress, Result, Status
from diffrac_cvx.relaxations import (
    Relaxation,
    constrained_alpha,
    correlation,
    lifted,
    multiclass,
    penalized_nu,
    v_space,
    v_space_normalized,
)
from diffrac_cvx.solvers import fista, low_rank, solve
from diffrac_cvx.solvers.branching import OptimalLabels, optimal_labels

__version__ = "0.1.0"

__all__ = [
    "Bracket",
    "ClustersCertificate",
    "Comparison",
    "ContradictionError",
    "DataError",
    "DegenerateDataWarning",
    "DimacsErrors",
    "LabelCertificate",
    "Links",
    "LostError",
    "OptimalLabels",
    "ParameterError",
    "Penalty",
    "Progress",
    "Relaxation",
    "ResourceError",
    "Result",
    "Status",
    "baselines",
    "certify_clusters",
    "certify_labels",
    "certify_v",
    "certify_y",
    "compare",
    "constrained_alpha",
    "correlation",
    "datasets",
    "find_components",
    "fista",
    "lifted",
    "low_rank",
    "metrics",
    "multiclass",
    "optimal_labels",
    "paths",
    "penalized_nu",
    "plotting",
    "registry",
    "rounding",
    "solve",
    "v_space",
    "v_space_normalized",
]

# What needs scikit-learn is imported when it is asked for, and the scores in files with it.
_LAZY = (
    "DiffracClassifier",
    "DiffracClustering",
    "DiffracClusteringCV",
    "MultiLabelDiffrac",
    "SavedScore",
    "load_score",
    "save_score",
)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'diffrac_cvx' has no attribute {name!r}")
    try:
        return getattr(import_module("diffrac_cvx.estimators"), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{name} needs scikit-learn ({error.name} is missing): pip install 'diffrac-cvx[app]'"
        ) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
