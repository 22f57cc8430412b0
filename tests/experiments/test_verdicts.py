"""Verdicts: the statements, and the pages that are written from the tables."""

import re
from pathlib import Path

import pytest

from experiments.harness import paper, reproduction
from experiments.harness.findings import Finding, Rule, Verdict, format_found, one_row


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
    assert reproduction.RULES_PAGE.read_text() == reproduction.format_rules(sections)
    assert all((reproduction.FIGURES / f"{name}.csv").is_file() for name in reproduction.CURRENT)
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


def test_without_judging_every_verdict_is_not_tested():
    rule = Rule("nu-range", "agrees if all", lambda t: True, lambda t: True)
    assert "**not tested**" in format_found(Finding("Share", one_row(share=0.75), [rule]), judged=False)


def test_the_sentence_on_an_exhibit_is_replaced_if_its_statements_have_other_verdicts(sections):
    verdicts = reproduction.collect_verdicts(sections)
    for exhibit in reproduction.read_exhibits():
        assert set(exhibit.expected) <= set(verdicts)
        assert exhibit.found(verdicts) == exhibit.result
        name = next(iter(exhibit.expected))
        assert "not tested" in exhibit.found({**verdicts, name: Verdict.NOT_TESTED})
    assert len(reproduction.read_exhibits()) == 10


def test_the_page_is_short_and_its_links_lead_to_its_sections_and_to_tests():
    page = reproduction.PAGE.read_text()
    assert len(page.split()) <= 4500
    headings = {reproduction.slug(title) for title in re.findall(r"^## (.*)$", page, flags=re.MULTILINE)}
    assert set(re.findall(r"\(#([\w-]+)\)", page)) <= headings
    for file, name in re.findall(r'\(\.\./(tests/[\w/]+\.py) "(\w+)"\)', page):
        assert f"def {name}(" in Path(file).read_text(), name
