"""The paper has the sections, references and numbers that it needs."""

import re
from pathlib import Path

import pandas as pd
import yaml

from experiments.harness.paper import PAPER, PASSAGES
from experiments.harness.reproduction import FIGURES, with_passage

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / PAPER).read_text()
_, HEAD, BODY = TEXT.split("---\n", 2)
BIBLIOGRAPHY = (ROOT / PAPER.with_suffix(".bib")).read_text()
MARKED = re.compile(r"<!-- (?:verdicts|from figures/\w+\.csv) -->\n.*?<!-- end -->\n", flags=re.DOTALL)


def test_the_paper_has_the_sections_and_the_length_that_the_journal_asks_for():
    assert re.findall(r"^# (.*)$", BODY, flags=re.MULTILINE) == [
        "Summary", "Statement of need", "State of the field", "Software design", "What is new",
        "Research impact statement", "AI usage disclosure", "Acknowledgements", "References",
    ]  # fmt: skip
    assert 750 <= len(BODY.split()) <= 1750


def test_the_head_of_the_paper_names_authors_with_affiliations_and_the_bibliography():
    head = yaml.safe_load(HEAD)
    places = {place["index"] for place in head["affiliations"]}
    assert all({"name", "orcid", "affiliation"} <= set(author) for author in head["authors"])
    assert {author["affiliation"] for author in head["authors"]} == places
    assert [author["email"] for author in head["authors"] if author.get("corresponding")]
    assert head["title"].startswith("diffrac_cvx: ")
    assert re.fullmatch(r"\d{1,2} [A-Z][a-z]+ \d{4}", head["date"])
    assert head["bibliography"] == PAPER.with_suffix(".bib").name


def test_every_reference_of_the_paper_is_cited_and_is_complete():
    entries = dict(re.findall(r"@\w+\{(\w+),\n(.*?)\n\}", BIBLIOGRAPHY, flags=re.DOTALL))
    assert set(re.findall(r"@(\w+)", BODY)) == set(entries)
    for name, fields in entries.items():
        found = set(re.findall(r"^  (\w+) *=", fields, flags=re.MULTILINE))
        assert {"author", "title", "year"} <= found, name
        assert found & {"journal", "booktitle"}, name


def test_every_number_of_the_paper_comes_from_a_table():
    for name, written in PASSAGES.items():
        table = pd.read_csv(ROOT / FIGURES / f"{name}.csv")
        assert TEXT.count(f"<!-- from figures/{name}.csv -->") == 1
        assert with_passage(TEXT, f"from figures/{name}.csv", written(table)) == TEXT
    assert len(MARKED.findall(BODY)) == len(PASSAGES) + 1, "and the verdicts, which tests/experiments compares"
    rest = re.sub(r"@\w+", "", MARKED.sub("", BODY))
    assert re.findall(r"(?<![A-Za-z])\d+", rest) == []


def test_the_files_that_the_paper_shows_exist_and_the_workflow_builds_it():
    pictures = re.findall(r"\]\((.*?)\)", BODY)
    assert pictures
    assert all((ROOT / PAPER.parent / picture).is_file() for picture in pictures)
    steps = yaml.safe_load((ROOT / ".github/workflows/paper.yml").read_text())["jobs"]["pdf"]["steps"]
    assert [step["with"]["paper-path"] for step in steps if "paper-path" in step.get("with", {})] == [str(PAPER)]


def test_placeholders_are_in_the_paper_alone_and_contributors_are_told():
    names = [entry["name"] for part in ("authors", "affiliations") for entry in yaml.safe_load(HEAD)[part]]
    if "# placeholder" in HEAD:
        assert "replace the placeholders" in (ROOT / "CONTRIBUTING.md").read_text()
        assert all(f"{name}  # placeholder" in HEAD for name in names)
    conduct = (ROOT / ".github/CODE_OF_CONDUCT.md").read_text()
    assert "contributor-covenant.org" in conduct
    assert str(PAPER) in conduct
    assert "## Questions" in (ROOT / "CONTRIBUTING.md").read_text()
