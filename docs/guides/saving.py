r"""
Keep a score, use it elsewhere; pipelines
=========================================

What is found on one table can be applied to others: next month's patients, a colleague's samples. A split in two is an affine
function of the columns, the score, with a threshold at 0, so that all that has to be kept is one number a column.
"""

import contextlib
import json
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
from diffrac_cvx.problem.formatting import format_lower

folder = Path(tempfile.mkdtemp())
wine = load_wine(as_frame=True)
wine.data[::2].to_csv(folder / "old.csv", index=False)
wine.data.iloc[1::2, ::-1].to_csv(
    folder / "new.csv", index=False
)  # its columns are in another order

# %%
# Without Python
# --------------
# .. code-block:: console
#
#    $ diffrac-cvx cluster old.csv --save score.json
#    $ diffrac-cvx predict score.json new.csv --out clusters.csv
#
# The columns of the new table are found by their names, in any order; more columns do not matter, and a missing one is named.
# Categories that became columns of 0 and 1 become the same columns; where means were put in the place of missing values, those of
# the first table are. The file of ``--out`` has a line for each row:

from diffrac_cvx.app.cli.program import run_command_line

with contextlib.chdir(folder):
    run_command_line(["cluster", "old.csv", "--save", "score.json", "--quiet"])
    run_command_line(["predict", "score.json", "new.csv", "--out", "clusters.csv", "--quiet"])
print("".join((folder / "clusters.csv").read_text().splitlines(keepends=True)[:4]))

# %%
# ``decision`` is the distance of the point's score from the threshold: negative in cluster 0, positive in cluster 1, and near 0 for
# the points that are hardly in either. For more than two clusters there is one score for each, the largest is that of the point's
# cluster, and ``margin`` is the largest less the second. ``cluster --out`` writes the same columns.
#
# The file is JSON with names and numbers: a person can read it, and reading it executes nothing, as a pickle would.

content = json.loads((folder / "score.json").read_text())
print({key: content[key] for key in ("form", "version", "n_clusters")})
for name, coefficient in zip(content["features"][:3], content["coefficients"][:3], strict=True):
    print(f"{name:20} {coefficient:+.4f}")

# %%
# In Python
# ---------
# `save_model` writes what was fitted, `load_model` reads it. What it returns gives the same numbers as the estimator, and needs no
# scikit-learn:

old, new = pd.read_csv(folder / "old.csv"), pd.read_csv(folder / "new.csv")
model = dc.DiffracClustering(n_clusters=3, random_state=0).fit(old)
dc.save_model(model, folder / "three.json")
score = dc.load_model(folder / "three.json")
assert np.array_equal(score.predict(old), model.labels_)
print(score.model, score.n_clusters, score.predict(new)[:10])
print(dc.metrics.contingency_matrix(wine.target[1::2], score.predict(new)).counts)

# %%
# All estimators of this package can be saved, those with several labels and those with classes too. Where the table was read by
# `datasets.read_table`, give it as ``table=``: then ``diffrac-cvx predict`` can read files like it, categories included.
#
# **What was proved is about the first table.** The bounds in the file say how good the split of *its* points is. Of new points
# nothing is proved: they get the cluster on whose side of the threshold they are, however far they are from all others. Rows of
# which something was known (:doc:`known_points`) obey it in the answer; the score knows their columns only.
#
# Pipelines
# ---------
# The estimators take the last place of a pipeline. **The bounds are then about the table that reaches them**: about the values that
# were filled in, the scaled columns, the features of a kernel, as if they had been measured.
#
# Missing values, filled in with the median of their column:

rng = np.random.default_rng(0)
holes = wine.data.mask(rng.random(wine.data.shape) < 0.1)
three = dc.DiffracClustering(n_clusters=3, random_state=0)
make_pipeline(SimpleImputer(strategy="median"), three).fit(holes)
print(f"of the filled table: no grouping costs less than {format_lower(three.lower_bound_)}")
print(f"agreement with the kinds: {adjusted_rand_score(wine.target, three.labels_):.2f}")
print(f"proved of the table without holes: {format_lower(three.fit(wine.data).lower_bound_)}")

# %%
# A ``StandardScaler`` before the estimator changes nothing, for it brings the columns to one scale itself
# (``standardize=False`` leaves them); its coefficients are then those of the scaled columns:

plain = dc.DiffracClustering().fit(wine.data)
scaled = make_pipeline(StandardScaler(), dc.DiffracClustering()).fit(wine.data)
assert np.array_equal(plain.labels_, scaled[-1].labels_)
print(f"{format_lower(plain.lower_bound_)} and {format_lower(scaled[-1].lower_bound_)}")

# %%
# A kernel before the estimator is a pipeline too, for groups that no direction separates: :doc:`kernels`.
#
# `save_model` keeps the last step alone, for the table that reaches it. The steps before it are scikit-learn's, and its page on
# model persistence says how they are kept; where they only fill in means, ``diffrac-cvx cluster --missing mean --save`` keeps all.
try:
    dc.save_model(scaled, folder / "scaled.json")
except dc.ParameterError as error:
    print(error)
