"""Scores of mutation testing: what mutmut reports is counted by part of the package."""

import json
from pathlib import Path

import pandas as pd

from experiments.mutation import scores

ROOT = Path(__file__).parents[2]
DIFFERENCE = """# diffrac_cvx.metrics.x_rank__mutmut_1: survived
--- diffrac_cvx/metrics.py
+++ diffrac_cvx/metrics.py
@@ -1,3 +1,3 @@
 def rank(F):
-    return sum(F > 0.0)
+    return sum(F >= 0.0)
"""


def test_a_mutant_is_killed_unless_it_survived_or_no_test_runs_it(tmp_path, monkeypatch):
    codes = {"a__mutmut_1": 0, "a__mutmut_2": 1, "a__mutmut_3": 36, "a__mutmut_4": 33, "a__mutmut_5": None}
    for file in ("diffrac_cvx/metrics.py.meta", "diffrac_cvx/rounding/signs.py.meta"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(json.dumps({"exit_code_by_key": codes}))
    monkeypatch.setattr(scores, "read_change", lambda mutant: scores.changed_line(DIFFERENCE))
    table = scores.read_results(tmp_path)
    assert list(table["part"].unique()) == ["files of the package itself", "rounding"]
    assert list(table["verdict"][:4]) == ["survived", "killed", "killed", "not run by a test"]
    assert set(table["of"]) == {5}
    assert table.loc[0, scores.KEY].tolist() == [
        "diffrac_cvx/metrics.py", "return sum(F > 0.0)", "return sum(F >= 0.0)",
    ]  # fmt: skip
    assert scores.mutation_scores(table.assign(reason=""))[0].value == 0.5
    assert scores.mutation_scores(table.assign(reason=["equivalent", *[""] * 7]))[1].value == 4 / 7


def test_an_explanation_counts_for_what_survived_only():
    known = pd.read_csv(scores.EXPLAINED, keep_default_na=False)
    made = [known[scores.KEY].assign(verdict=verdict) for verdict in ("survived", "killed")]
    table = scores.explain(pd.concat(made, ignore_index=True))
    assert list(table["reason"]) == [*known["reason"], *[""] * len(known)]
    assert (known["reason"] != "").all()


def test_every_explanation_is_of_a_line_of_the_library_as_it_is():
    for row in pd.read_csv(scores.EXPLAINED, keep_default_na=False).itertuples():
        assert row.code in {line.strip() for line in (ROOT / row.file).read_text().splitlines()}, row
        assert row.changed != row.code
