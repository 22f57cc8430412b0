"""What the help says of the options is so on real tables."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import diffrac_cvx as dc
from diffrac_cvx.app.cli.options import LAMBDA_SAYS
from diffrac_cvx.app.cli.program import run

TABLES = {
    "wdbc": lambda: load_breast_cancer(return_X_y=True)[0],
    "sonar": lambda: dc.datasets.load("sonar")[0],
    "diabetes": lambda: dc.datasets.load("diabetes")[0],
}


@pytest.mark.parametrize("name", TABLES)
def test_lambda_leaves_as_many_features_as_its_help_says(name):
    X = TABLES[name]()
    assert "0 uses all; at 0.1 about half of them or fewer have a weight worth counting, at 1 a third or" in LAMBDA_SAYS
    for lam, least, most in ((0.0, 1.0, 1.0), (0.1, 0.0, 0.6), (1.0, 0.0, 1 / 3)):
        weights = np.abs(np.ravel(dc.DiffracClustering(lam=lam, tol=1e-3).fit(X).scaled_coef_))
        assert least <= np.mean(weights > 1e-3 * weights.max()) <= most


def test_many_features_keep_tiny_weights_at_lambda_one():
    model = dc.DiffracClustering(lam=1.0).fit(TABLES["wdbc"]())
    assert len(model.result_.features(30).used) >= 15


def test_the_help_does_not_promise_one_feature_at_lambda_one(capsys):
    assert run(["compare", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "one is" not in said
    assert "It depends on the table" in said
