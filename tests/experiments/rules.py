"""Rules of the verdicts: each is tested on tables constructed for its answers."""

import pytest

from experiments.harness.claims import Verdict

AGREES, PARTLY, DIFFERS, NOT_COMPARABLE, NOT_TESTED = Verdict


def each_answer(rules):
    """Run a test with every rule at every entry of its answers.

    The key is the sentence tested; the value is a function from the parameters of a table to a claim, and pairs of such
    parameters (a tuple or keywords) and the verdict.
    """
    cases = [
        pytest.param(rule, given, verdict, id=f"{sentence}-{verdict.value}")
        for sentence, (rule, *answers) in rules.items()
        for given, verdict in answers
    ]
    return pytest.mark.parametrize(("rule", "given", "verdict"), cases)


def verdict_of(rule, given):
    """Return the verdict of a rule on the table with given parameters."""
    return (rule(**given) if isinstance(given, dict) else rule(*given)).verdict
