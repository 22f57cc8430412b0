r"""
Labels of sets of rows: bags, order and counts
==============================================

Often a label belongs to a set of rows. A folder of images contains at least one eight, but nobody noted which image. In a video
an action begins once and then continues. For the voters in a district, only the number who chose a party is known. This is weak
supervision; for bags it is also called multiple-instance learning.

`Constraints` represents such knowledge as ``bags``, ``order``, ``sizes``, or as inequalities and equations. `optimal_labels` then
finds the labels of lowest cost in Eq. (9) among all that satisfy the constraints, with certified bounds on the lowest cost.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score

import diffrac_cvx as dc

RIDGE, SIZE, TRAINING = 0.3, 5, 30
digits = load_digits()
eight = np.where(digits.target == 8, 1.0, -1.0)


def draw_bags(seed, n_bags=130):
    """Return the images of each bag: one or two eights in every other bag, no eight in the others."""
    rng = np.random.default_rng(seed)
    positive, negative = (
        list(rng.permutation(np.flatnonzero(eight == y))) for y in (1.0, -1.0)
    )
    counts = [(1 + int(rng.random() < 0.3)) * (k % 2) for k in range(n_bags)]
    return np.array(
        [[(positive if i < c else negative).pop() for i in range(SIZE)] for c in counts]
    )


images = draw_bags(seed=1)
has_eight = (eight[images] > 0).any(axis=1)  # one yes or no for each bag: all that is known
rows = images[:TRAINING].ravel()
y, positive = eight[rows], has_eight[:TRAINING]
bags = np.arange(len(rows)).reshape(-1, SIZE)  # the rows of each training bag, counted from 0
print(f"{len(rows)} images in {len(bags)} bags; {positive.sum()} bags contain an eight")

# %%
# Bags
# ----
# All images of a negative bag have a known label. Positive bags are passed as ``bags``: at least one image of each has the label
# +1. Since the known labels exclude a single cluster, the imbalance needs no penalty, and ``nu=0``. The columns are standardised.


def columns(rows, of):
    """Return columns of some rows, standardised by the means and deviations of other rows."""
    X = digits.data[of]
    varying = X.std(axis=0) > 0
    return ((digits.data[rows] - X.mean(axis=0)) / np.where(varying, X.std(axis=0), 1.0))[
        :, varying
    ]


X = columns(rows, rows)
known = np.where(np.repeat(positive, SIZE), np.nan, -1.0)
constraints = dc.Constraints(bags=bags[positive], labels=known)
found = dc.optimal_labels(X, nu=0.0, ridge=RIDGE, constraints=constraints)
print(found)
print("recomputed without the search:", dc.check_certificate(X, found))

# %%
# No labels that satisfy the bags cost less than the lower bound. The usual method alternates instead: it fits a direction to the
# labels by ridge regression, then takes the labels that are nearest to the predictions among those that satisfy the bags. Its
# result depends on the starting point, and it has no bound.


def regress(X, labels):
    """Return the ridge regression of Eq. (9) on labels."""
    return Ridge(alpha=RIDGE * len(X)).fit(X, labels)


def alternate(X, bags, positive, scores):
    """Return the cost and the labels at which alternation from some scores stops."""
    labels = np.zeros(len(X))
    while True:
        last, labels = labels, np.where(scores > 0, 1.0, -1.0)
        labels[bags[np.arange(len(bags)), scores[bags].argmax(axis=1)]] = 1.0
        labels[bags[~positive]] = -1.0
        model = regress(X, labels)
        scores = model.predict(X)
        if np.array_equal(labels, last):
            return np.mean((labels - scores) ** 2) + RIDGE * np.sum(model.coef_**2), labels


def best_of(starts, X, bags, positive):
    """Return the lowest cost of alternation from random scores, and its labels."""
    scores = np.random.default_rng(0).standard_normal((starts, len(X)))
    return min(
        (alternate(X, bags, positive, each) for each in scores), key=lambda pair: pair[0]
    )


for starts in (1, 5, 20):
    cost, labels = best_of(starts, X, bags, positive)
    print(
        f"alternation, {starts:2} starts: cost {cost:.4f}, F1 of the eights {f1_score(y, labels):.2f}"
    )
print(f"optimum: cost {found.upper:.4f}, F1 of the eights {f1_score(y, found.labels):.2f}")

# %%
# The true labels are used only for this comparison.
#
# New rows, and the threshold
# ---------------------------
# `optimal_labels` labels the rows of the table. For new images, regress on these labels. At ``nu=0`` the optimum labels few rows
# of each positive bag as positive, mostly one, so that predictions are low, and the threshold 0 misses bags. Choose the threshold
# on the training bags:


def bag_scores(model, rows):
    """Return the largest prediction in each bag."""
    return model.predict(columns(rows, images[:TRAINING].ravel())).reshape(-1, SIZE).max(axis=1)


model = regress(X, found.labels)
print(f"rows found in each positive bag: {(found.labels[bags[positive]] > 0).sum(axis=1)}")
training, new = bag_scores(model, rows), bag_scores(model, images[TRAINING:].ravel())
candidates = np.sort(training)[:-1] + np.diff(np.sort(training)) / 2
threshold = max(candidates, key=lambda value: np.mean((training > value) == positive))
for value in (0.0, threshold):
    right = np.mean((new > value) == has_eight[TRAINING:])
    print(f"threshold {value:.2f}: {100 * right:.0f} of 100 new bags are right")

# %%
# More knowledge
# --------------
# All constraints can be combined. Here, two images of a bag are copies of each other, one image was labelled by a person, and the
# number of eights is known to be between 10 and 20. The example uses twenty bags of the table above:

few = bags[:20]
part = X[: few.size]
checked = known[: few.size].copy()
checked[5] = y[5]
more = dc.Constraints(
    bags=few[positive[:20]],  # at least one eight in each
    labels=checked,  # NaN where unknown
    must_link=[(17, 18)],
    sizes=(10, 20),  # least and largest number of eights
)
again = dc.optimal_labels(part, nu=0.0, ridge=RIDGE, constraints=more)
print(again)
print(f"{np.sum(again.labels > 0)} eights; rows 17 and 18: {again.labels[17:19]}")

# %%
# Contradictory constraints raise an error, which names as few of them as possible:

try:
    dc.optimal_labels(
        part, constraints=dc.Constraints(bags=few[positive[:20]][:2], sizes=(0, 1))
    )
except dc.DataError as error:
    print(error)

# %%
# Order and counts
# ----------------
# In each of ten clips of twelve images, threes come first and then eights. ``order`` accepts the rows of each clip in their
# order. If only the number of eights in each clip is known, this is an equation for the sum of its labels; ``equal`` accepts the
# coefficients, one row per clip, and the right sides. All clips have both digits, so the default ν = 1 is used.

rng = np.random.default_rng(0)
threes, eights = (list(rng.permutation(np.flatnonzero(digits.target == k))) for k in (3, 8))
counts = rng.integers(1, 12, size=10)
clips = np.arange(120).reshape(10, 12)
shown = np.array([(threes if i < 12 - c else eights).pop() for c in counts for i in range(12)])
Z, truth = columns(shown, shown), eight[shown]
ends = np.full(120, np.nan)
ends[clips[:, 0]], ends[clips[:, -1]] = -1.0, 1.0
members = np.kron(np.eye(10), np.ones(12))  # (10, 120)
for name, given in {
    "no knowledge": None,
    "order": dc.Constraints(order=clips, labels=ends),
    "counts": dc.Constraints(equal=(members, 2.0 * counts - 12)),
}.items():
    best = dc.optimal_labels(Z, ridge=RIDGE, constraints=given)
    right = max(
        np.mean(best.labels == truth), np.mean(best.labels == -truth) if given is None else 0.0
    )
    print(f"{name:12} {100 * right:.0f} % right; {best.status.name}, gap {best.gap:.1e}")

# %%
# ``at_most`` accepts inequalities A y ≤ b in the same form.
#
# When the optimum is not the best answer
# ---------------------------------------
# The lowest cost is not the highest accuracy. In another random sample of bags, alternation from five starts has a higher cost,
# but finds more of the eights:

images = draw_bags(seed=0)
rows = images[:TRAINING].ravel()
y, positive = eight[rows], (eight[images[:TRAINING]] > 0).any(axis=1)
X, known = columns(rows, rows), np.where(np.repeat(positive, SIZE), np.nan, -1.0)
found = dc.optimal_labels(
    X, nu=0.0, ridge=RIDGE, constraints=dc.Constraints(bags=bags[positive], labels=known)
)
cost, labels = best_of(5, X, bags, positive)
print(f"alternation: cost {cost:.4f}, F1 {f1_score(y, labels):.2f}")
print(
    f"optimum:     cost {found.upper:.4f}, F1 {f1_score(y, found.labels):.2f}, gap {found.gap:.1e}"
)
print(
    f"cost of the true labels: {dc.certify_labels(X, y, found.lower, nu=0.0, ridge=RIDGE).objective:.4f}"
)

# %%
# The true labels cost more than both: with 30 bags, the objective itself is misleading, and no search can correct this. More
# bags, a few known labels or another ridge change the problem; the proof shows only that the search did not fail.
#
# ``make weak`` compares these methods on many instances (:doc:`/beyond`). Alternation from many starts often finds the optimum
# too, but cannot prove it. The time grows with the number of unknown labels: two hundred take seconds. If the only constraint is
# the size of a cluster in the whole table, a proof is hard to obtain.
