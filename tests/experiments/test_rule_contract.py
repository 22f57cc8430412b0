"""Contract of all rules: on tables made for it, each agrees, agrees in part and differs; none is left out."""

from importlib import import_module

import pytest
from rules import AGREES, DIFFERS, PARTLY

from experiments.harness.command import find_experiments
from experiments.harness.findings import BY_NAME
from experiments.harness.reproduction import findings_of

RULES = {
    rule.statement: (stem, rule) for stem in find_experiments() for rule in getattr(findings_of(stem), "RULES", ())
}


@pytest.mark.parametrize("statement", RULES)
def test_a_rule_has_tables_on_which_it_agrees_agrees_in_part_and_differs(statement):
    stem, rule = RULES[statement]
    made = import_module(f"rule_tables.{stem}").TABLES[statement]
    assert {AGREES, PARTLY, DIFFERS} <= {verdict for _, verdict in made}
    assert [rule(table) for table, _ in made] == [verdict for _, verdict in made]


@pytest.mark.parametrize("statement", RULES)
def test_the_words_of_a_rule_name_its_outcomes(statement):
    _, rule = RULES[statement]
    assert "agrees if" in rule.words
    assert "in part if" in rule.words
    assert rule.words[-1] != "."
    assert statement in BY_NAME or " " in statement


@pytest.mark.parametrize("stem", find_experiments())
def test_every_rule_of_an_experiment_is_tested_once(stem):
    rules = [rule.statement for rule in getattr(findings_of(stem), "RULES", ())]
    assert len(set(rules)) == len(rules)
    if rules:
        assert set(import_module(f"rule_tables.{stem}").TABLES) == set(rules)
