"""The rules of the verdicts: each is tried on tables that are made for its answers."""

import pytest

from experiments.harness.claims import Verdict

AGREES, PARTLY, DIFFERS, NOT_COMPARABLE, NOT_TESTED = Verdict


def each_answer(rules):
    """Run a test with every rule at every entry of its answers.

    A rule stands under the sentence that it holds: a function of what its table is made of to a claim, then pairs of
    that, a tuple or the keywords, and the verdict.
    """
    cases = [
        pytest.param(rule, given, verdict, id=f"{sentence}-{verdict.value}")
        for sentence, (rule, *answers) in rules.items()
        for given, verdict in answers
    ]
    return pytest.mark.parametrize(("rule", "given", "verdict"), cases)


def verdict_of(rule, given):
    """The verdict of a rule on what its table is made of."""
    return (rule(**given) if isinstance(given, dict) else rule(*given)).verdict
