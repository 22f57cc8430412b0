"""Estimators that follow scikit-learn's API, model selection without labels, and saved models.

Modules that need scikit-learn are imported on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "classifier": ["DiffracClassifier"],
        "clustering": ["DiffracClustering"],
        "clustering_cv": ["DiffracClusteringCV"],
        "multi_label": ["MultiLabelDiffrac"],
        "persistence": ["load_model", "save_model"],
    },
)
