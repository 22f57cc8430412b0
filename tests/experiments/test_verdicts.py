"""Verdicts: the statements, and the pages that are written from the tables."""

import re

import pytest

from experiments.harness import paper, reproduction
from experiments.harness.findings import Finding, Rule, format_found, one_row


@pytest.fixture(scope="module")
def sections():
    """All sections of the page; they take long to compute."""
    return reproduction.read_sections()


def test_every_claim_has_a_number_and_every_experiment_its_pictures(sections):
    for section in sections:
        assert section.found, section.stem
        for found in section.found:
            text = format_found(found)
            assert re.search(r"\d", text), text
            assert not re.search(r"\bnan\b|\binf\b", text), text
        for suffix in (".pdf", ".png"):
            assert (reproduction.FIGURES / f"{section.stem}{suffix}").exists()


def test_every_statement_has_one_verdict_or_a_test_and_the_pages_are_those_of_the_tables(sections):
    names = [name for section in sections for name in section.verdicts]
    assert len(set(names)) == len(names)
    assert reproduction.open_statements(sections) == []
    assert reproduction.PAGE.read_text() == reproduction.format_page(sections)
    assert reproduction.BEYOND_PAGE.read_text() == reproduction.format_beyond(sections)
    text = reproduction.README.read_text()
    assert reproduction.renew_readme(text, reproduction.collect_verdicts(sections)) == text
    text = paper.PAPER.read_text()
    assert reproduction.renew_paper(text, reproduction.collect_verdicts(sections)) == text


def test_a_missing_table_is_said_and_its_statements_are_open(tmp_path):
    sections = reproduction.read_sections(tmp_path)
    page = reproduction.format_page(sections) + reproduction.format_beyond(sections)
    assert page.count("Not measured yet") == len(reproduction.EXPERIMENTS)
    assert any(statement.name == "fig1-rank-affine" for statement in reproduction.open_statements(sections))
    assert "**open**" in page


def test_a_finding_has_its_table_and_the_verdict_with_its_rule():
    rule = Rule("nu-range", "agrees if all", lambda t: False, lambda t: t["share"].iloc[0] > 0.5)
    text = format_found(Finding("Share", one_row(share=0.75), [rule]))
    assert "|0.75|" in text
    assert "(2.3): **partly agrees**. *Rule:* agrees if all." in text
