"""Convex relaxations for discriminative clustering with sparse regularisers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # each name is imported when it is first used, see `__getattr__`
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
    from diffrac_cvx.comparison import Comparison, StructureTest, compare, structure_test
    from diffrac_cvx.errors import (
        ContradictionError,
        DataError,
        DegenerateDataWarning,
        LostError,
        ParameterError,
        ResourceError,
    )
    from diffrac_cvx.points.links import Links
    from diffrac_cvx.problem.gradient import Gradient
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
    "Gradient",
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
    "StructureTest",
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
    "structure_test",
    "v_space",
    "v_space_normalized",
]

_DEFINED_IN = {  # the module of each name that is not a module
    "certificates": "ClustersCertificate LabelCertificate certify_clusters certify_labels certify_v certify_y "
    "find_components",
    "comparison": "Comparison StructureTest compare structure_test",
    "errors": "ContradictionError DataError DegenerateDataWarning LostError ParameterError ResourceError",
    "estimators": "DiffracClassifier DiffracClustering DiffracClusteringCV MultiLabelDiffrac "
    "SavedScore load_score save_score",
    "points.links": "Links",
    "problem.gradient": "Gradient",
    "problem.penalty": "Penalty",
    "problem.result": "Bracket DimacsErrors Progress Result Status",
    "relaxations": "Relaxation constrained_alpha correlation lifted multiclass penalized_nu v_space v_space_normalized",
    "solvers": "fista low_rank solve",
    "solvers.branching": "OptimalLabels optimal_labels",
}
_HOME = {name: module for module, names in _DEFINED_IN.items() for name in names.split()}
_MODULES = (
    "baselines", "certificates", "comparison", "datasets", "errors", "estimators", "machine", "metrics", "paths",
    "plotting", "points", "problem", "registry", "relaxations", "rounding", "solvers", "typing",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name when it is used."""
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(f"module 'diffrac_cvx' has no attribute {name!r}")
    try:
        module = import_module(f"diffrac_cvx.{_HOME.get(name, name)}")
        return getattr(module, name) if name in _HOME else module
    except ModuleNotFoundError as error:
        if "estimators" not in (name, _HOME.get(name)):
            raise
        raise ImportError(
            f"{name} needs scikit-learn ({error.name} is missing): pip install 'diffrac-cvx[app]'"
        ) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
