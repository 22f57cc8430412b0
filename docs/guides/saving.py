r"""
Saving and reusing a fitted model
=================================

A model fitted to one table can be applied to others: next month's patients, a colleague's samples. A split in two is given by an
affine function of the columns, the decision function, with threshold 0. A saved model therefore has one coefficient per column.
"""

import contextlib
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import diffrac_cvx as dc

folder = Path(tempfile.mkdtemp())
wine = load_wine(as_frame=True)
wine.data[::2].to_csv(folder / "old.csv", index=False)
wine.data.iloc[1::2, ::-1].to_csv(
    folder / "new.csv", index=False
)  # its columns are in another order

# %%
# On the command line
# -------------------
# .. code-block:: console
#
#    $ diffrac-cvx cluster old.csv --save model.npz
#    $ diffrac-cvx predict model.npz new.csv --out clusters.csv
#
# The columns of the new table are matched by name, in any order; additional columns are ignored, and a missing one is an error.
# Categorical columns are one-hot encoded as in the first table. Missing values are replaced by the means of the first table, if
# this was done there. The output file of ``--out`` has one line per row:

from diffrac_cvx.app.cli.program import run_command_line

with contextlib.chdir(folder):
    run_command_line(["cluster", "old.csv", "--save", "model.npz", "--quiet"])
    run_command_line(["predict", "model.npz", "new.csv", "--out", "clusters.csv", "--quiet"])
print("".join((folder / "clusters.csv").read_text().splitlines(keepends=True)[:4]))

# %%
# Its columns are those of ``cluster --out`` (:doc:`/command_line`).
#
# The model file contains the coefficients, in the units of the columns, and names, bounds and warnings, but no rows of the table.
# Unlike a pickle, it executes no code when it is loaded.

saved = dc.load_model(folder / "model.npz")
for name, coefficient in zip(saved.schema_.names[:3], saved.coef_[:3], strict=True):
    print(f"{name:20} {coefficient:+.4f}")

# %%
# In Python
# ---------
# `save_model` writes a fitted estimator, and `load_model` returns an estimator of the same class with the same predictions. Pass
# a data frame with its columns in the order of the fit:

old, new = pd.read_csv(folder / "old.csv"), pd.read_csv(folder / "new.csv")
model = dc.DiffracClustering(n_clusters=3, random_state=0).fit(old)
dc.save_model(model, folder / "three.npz")
saved = dc.load_model(folder / "three.npz")
assert np.array_equal(saved.predict(old), model.labels_)
new = new[saved.feature_names_in_]
print(saved.predict(new)[:10])
print(dc.metrics.contingency_matrix(wine.target[1::2], saved.predict(new)).counts)

# %%
# All estimators of this package can be saved, including `MultiLabelDiffrac` and `DiffracClassifier`. If the table was read by
# `datasets.read_table`, pass it as ``table=``: then ``diffrac-cvx predict`` can read similar files, categories included.
#
# **The bounds refer to the first table.** They bound the cost of the split of *its* points and do not apply to new points, which
# are assigned by their side of the threshold, however far they are from all other points. The labels of the fit satisfy the
# constraints on rows (:doc:`known_points`); the saved decision function depends on the columns only.
#
# Pipelines
# ---------
# An estimator can be the last step of a pipeline. **The bounds then refer to the table that the estimator receives**: imputed
# values, scaled columns and kernel features are treated as if they had been measured.
#
# Here missing values are replaced by the median of their column:

rng = np.random.default_rng(0)
holes = wine.data.mask(rng.random(wine.data.shape) < 0.1)
three = dc.DiffracClustering(n_clusters=3, random_state=0)
make_pipeline(SimpleImputer(strategy="median"), three).fit(holes)
print(
    f"of the imputed table: no partition costs less than {dc.format_lower(three.lower_bound_)}"
)
print(f"agreement with the kinds: {adjusted_rand_score(wine.target, three.labels_):.2f}")
print(
    f"lower bound of the complete table: {dc.format_lower(three.fit(wine.data).lower_bound_)}"
)

# %%
# A ``StandardScaler`` before the estimator changes nothing, because the estimator standardises the columns itself (unless
# ``standardize=False``). A pipeline with kernel features is useful for groups that no direction separates:
# :doc:`kernels`.
#
# `save_model` saves only the last step, which expects the table from the previous steps. To save these, see scikit-learn's page
# on model persistence; if they only impute means, ``diffrac-cvx cluster --missing mean --save`` saves everything.

scaled = make_pipeline(StandardScaler(), dc.DiffracClustering()).fit(wine.data)
try:
    dc.save_model(scaled, folder / "scaled.npz")
except dc.ParameterError as error:
    print(error)
