"""Estimators in scikit-learn's manner, the choice of the weights without labels, and fitted models kept in files.

What needs scikit-learn is imported when it is asked for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "classifier": ["DiffracClassifier"],
        "clustering": ["DiffracClustering"],
        "clustering_cv": ["DiffracClusteringCV"],
        "multi_label": ["MultiLabelDiffrac"],
        "persistence": ["SavedModel", "load_model", "save_model"],
    },
)
