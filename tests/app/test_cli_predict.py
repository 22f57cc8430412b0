"""Models saved by `cluster --save`, and `predict` with another table."""

import csv
import json

import pytest

import diffrac_cvx as dc

HEAD = ("name", "age", "income", "city", "sex")
ROWS = [
    (f"p{i}", f"{20 + 30 * (i % 2) + i * 7 % 5:.2f}", i * 37 % 11, ("Oslo", "Rome", "Bern")[i * i % 7 % 3], sex)
    for i, sex in enumerate("mmff" * 10)
]
HOW = ("--drop", "name", "--one-hot-all")


def write(path, head, rows, separator=","):
    path.write_text("\n".join(separator.join(map(str, row)) for row in (head, *rows)) + "\n")
    return path


def columns(path):
    rows = list(csv.reader(path.open()))
    return dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "table.csv", HEAD, ROWS)


@pytest.fixture
def model(table, tmp_path, command):
    how = ("--drop", "name", "--one-hot", "city", "--one-hot", "sex", "--no-structure", "--quiet")
    assert command("cluster", table, *how, "--save", tmp_path / "model.npz")[0] < 2
    return tmp_path / "model.npz"


@pytest.mark.parametrize(
    "options",
    ["--missing mean", "--clusters 3", "--lambda 0.05 --no-standardize"],
)
def test_a_table_gets_its_own_labels_back_to_the_last_digit(options, table, tmp_path, command):
    table.write_text(table.read_text().replace(",20.00,", ",,") if "mean" in options else table.read_text())
    first, second, model = (tmp_path / name for name in ("first.csv", "second.csv", "model.npz"))
    how = (*HOW, "--no-structure", *options.split())
    status, printed, _ = command("cluster", table, *how, "--out", first, "--save", model)
    assert status < 2  # it may be split along one column
    assert f"wrote {model}" in printed
    assert command("predict", model, table, "--out", second)[0] < 2
    assert first.read_bytes() == second.read_bytes()


def test_columns_may_be_in_any_order_and_more_with_another_separator_and_decimal_mark(model, table, tmp_path, command):
    order = (4, 1, 3, 2)
    rows = [[*(str(row[j]).replace(".", ",") for j in order), "extra"] for row in ROWS]
    other = write(tmp_path / "other.csv", (*(HEAD[j] for j in order), "weight"), rows, ";")
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    command("predict", model, table, "--out", one)
    status, printed, _ = command("predict", model, other, "--out", two)
    assert status < 2
    assert one.read_text() == two.read_text()
    assert "Note: ignored columns, which are not in the training table: 'weight'." in printed
    assert "'name'" not in printed  # it is excluded by the saved options
    alone = write(tmp_path / "alone.csv", HEAD, ROWS[7:8])
    found = json.loads(command("predict", model, alone, "--json")[1])
    assert len(found["rows"]) == 1
    assert str(found["clusters"][0]) == columns(one)["cluster"][7]
    assert float(columns(one)["decision"][7]) == pytest.approx(found["decision"][0], rel=1e-8)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("age", "Ages", "Did you mean 'Ages'?"),
        ("Oslo", "Kyiv", "column 'city' contains 'Kyiv' in row 0"),
        (",20.00,", ",,", "values are missing in 4 of 40 rows: column 'age' (4)"),
        (",20.00,", ",old,", "column 'age' contains 'old' in row 0"),
        (",20.00,", ",inf,", "column 'age' contains 'inf' in row 0"),
    ],
)
def test_what_does_not_fit_the_model_is_one_line_that_names_it(old, new, message, model, table, command):
    table.write_text(table.read_text().replace(old, new))
    status, _, error = command("predict", model, table)
    assert status == 2
    assert message in error.splitlines()[0]


def test_missing_values_and_new_categories_take_the_means_of_the_first_table_or_are_dropped(
    model, table, tmp_path, command
):
    table.write_text(table.read_text().replace(",20.00,", ",,").replace("Oslo", "Kyiv", 1))
    out = tmp_path / "out.csv"
    status, printed, _ = command("predict", model, table, "--missing", "mean", "--out", out)
    assert status < 2
    assert " by the training mean" in printed
    loaded = dc.load_model(model)
    row = dict(zip(loaded.schema_.names, loaded.schema_.means, strict=True))
    row |= {"income": 0.0, "sex=m": 1.0}  # the first row, whose age and city are missing
    value = sum(c * row[name] for name, c in zip(loaded.schema_.names, loaded.coef_, strict=True))
    assert float(columns(out)["decision"][0]) == pytest.approx(value + loaded.intercept_)
    command("predict", model, table, "--missing", "drop", "--out", out)
    assert columns(out)["row"][0] == "1"
    table.write_text("\n".join(table.read_text().splitlines()[:2]) + "\n")
    assert "none of the 1 rows is complete" in command("predict", model, table, "--missing", "drop")[2]


def test_the_margin_is_the_best_score_less_the_second_where_there_are_more_than_two_clusters(table, tmp_path, command):
    out = tmp_path / "out.csv"
    command("cluster", table, *HOW, "--clusters", "3", "--out", out)
    found = columns(out)
    for k, margin in enumerate(found["margin"]):
        scores = [float(found[f"decision_{j}"][k]) for j in range(3)]
        third, second, best = sorted(scores)
        assert float(margin) == pytest.approx(best - second, abs=1e-7 * max(best, -third))
        assert scores[int(found["cluster"][k])] == best


def test_what_is_known_of_rows_is_no_part_of_the_model_and_said_so(table, tmp_path, command):
    printed = command("cluster", table, *HOW, "--must-link", "0,1", "--save", tmp_path / "model.npz")[1]
    assert "the saved model predicts from the features alone and changes the cluster of 1 of 40 points" in printed


def test_a_split_that_was_no_answer_is_said_so_again_with_status_one(table, tmp_path, command):
    command("cluster", table, *HOW, "--nu", "0", "--save", tmp_path / "model.npz")
    status, printed, _ = command("predict", tmp_path / "model.npz", table)
    assert status == 1
    assert "WARNING" in printed


def test_a_file_that_is_no_model_and_one_that_is_not_there_end_with_status_two(table, tmp_path, command):
    for model, message in ((table, "is not a saved model"), (tmp_path / "none.npz", "cannot be opened")):
        status, _, error = command("predict", model, table)
        assert status == 2
        assert message in error
