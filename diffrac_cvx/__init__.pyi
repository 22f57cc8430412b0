from . import baselines as baselines
from . import datasets as datasets
from . import metrics as metrics
from . import paths as paths
from . import plotting as plotting
from . import registry as registry
from . import rounding as rounding
from .certificates import (
    Certificate as Certificate,
)
from .certificates import (
    LabelCertificate as LabelCertificate,
)
from .certificates import (
    certify_clusters as certify_clusters,
)
from .certificates import (
    certify_labels as certify_labels,
)
from .certificates import (
    certify_v as certify_v,
)
from .certificates import (
    certify_y as certify_y,
)
from .certificates import (
    check_certificate as check_certificate,
)
from .certificates import (
    find_components as find_components,
)
from .comparison import (
    Comparison as Comparison,
)
from .comparison import (
    StructureTest as StructureTest,
)
from .comparison import (
    Validation as Validation,
)
from .comparison import (
    compare as compare,
)
from .comparison import (
    structure_test as structure_test,
)
from .comparison import (
    validate as validate,
)
from .errors import (
    DataError as DataError,
)
from .errors import (
    DegenerateDataWarning as DegenerateDataWarning,
)
from .errors import (
    InvalidBoundError as InvalidBoundError,
)
from .errors import (
    ParameterError as ParameterError,
)
from .errors import (
    ResourceError as ResourceError,
)
from .estimators import (
    DiffracClassifier as DiffracClassifier,
)
from .estimators import (
    DiffracClustering as DiffracClustering,
)
from .estimators import (
    DiffracClusteringCV as DiffracClusteringCV,
)
from .estimators import (
    MultiLabelDiffrac as MultiLabelDiffrac,
)
from .estimators import (
    load_model as load_model,
)
from .estimators import (
    save_model as save_model,
)
from .points.constraints import Constraints as Constraints
from .problem.formatting import format_lower as format_lower
from .problem.formatting import format_upper as format_upper
from .problem.penalty import Penalty as Penalty
from .problem.result import (
    Bracket as Bracket,
)
from .problem.result import (
    Progress as Progress,
)
from .problem.result import (
    Result as Result,
)
from .problem.result import (
    Status as Status,
)
from .relaxations import (
    Relaxation as Relaxation,
)
from .relaxations import (
    constrained_alpha as constrained_alpha,
)
from .relaxations import (
    correlation as correlation,
)
from .relaxations import (
    lifted as lifted,
)
from .relaxations import (
    multiclass as multiclass,
)
from .relaxations import (
    penalized_nu as penalized_nu,
)
from .relaxations import (
    v_space as v_space,
)
from .relaxations import (
    v_space_normalized as v_space_normalized,
)
from .solvers import fista as fista
from .solvers import low_rank as low_rank
from .solvers import solve as solve
from .solvers.exact.portfolio import OptimalLabels as OptimalLabels
from .solvers.exact.portfolio import optimal_labels as optimal_labels

__version__: str
