"""What the program's comparison shows while it works and at its end."""

from diffrac_cvx.app.cli.program import run

METHODS = ("-m", "low_rank", "-m", "k-means standardised", "-m", "penalized_nu/SCS")


def test_what_a_method_found_is_said_as_soon_as_it_has_run(capsys):
    assert run(["compare", "heart", *METHODS, "--lambda", "0.1"]) == 0
    low_rank, k_means = capsys.readouterr().err.splitlines()
    assert low_rank.startswith("low_rank: a split of cost 0.")
    assert ", proved: none below 0." in low_rank
    assert k_means.startswith("k-means standardised: a split of cost 0.")
    assert "proved" not in k_means


def test_nothing_is_said_where_the_command_is_to_be_silent(capsys):
    for silent in ("--quiet", "--json"):
        assert run(["compare", "heart", "-m", "low_rank", silent]) == 0
        assert capsys.readouterr().err == ""


def test_what_was_left_out_is_said_last(capsys, tmp_path):
    report = tmp_path / "report.html"
    assert run(["compare", "heart", *METHODS, "--lambda", "0.1", "--report", str(report)]) == 0
    said = "penalized_nu/SCS is left out: it takes no l1 penalty"
    *_, last, _written = capsys.readouterr().out.splitlines()
    assert last == said
    page = report.read_text()
    assert page.index("No disagreement") < page.index("<h2>Methods</h2>") < page.index(said)
    assert page.count(said) == 1
