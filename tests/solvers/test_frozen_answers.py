import json
from types import SimpleNamespace

import pytest
from frozen import KEPT, TOL, answer, cases, solve

KEPT_ANSWERS = json.loads(KEPT.read_text())
CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_answers_are_those_of_the_versions_before(case):
    kept = KEPT_ANSWERS[case.name]
    found = SimpleNamespace(**answer(solve(case)))
    assert found.status == kept["status"]
    assert found.components == kept["components"]
    lower, upper = (float.fromhex(kept[end]) for end in ("lower", "upper"))
    if upper - lower <= upper / 2:  # elsewhere little is proved, and other labels are as good
        assert found.labels == kept["labels"]
    now = SimpleNamespace(lower=float.fromhex(found.lower), upper=float.fromhex(found.upper))
    assert now.lower <= upper
    assert lower <= now.upper
    # Other processors and libraries end at other points: what is asked for is the tolerance of the call.
    assert now.upper - now.lower <= max(1.01 * (upper - lower), TOL) + 1e-12
