"""Columns that are not features are reported, and no remedy turns the outcome into a feature."""

import numpy as np
import openpyxl
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import diffrac_cvx as dc
from diffrac_cvx.datasets.tables import read_table
from diffrac_cvx.datasets.targets import target_rank

RNG = np.random.default_rng(0)
N = 60
BASE = pd.DataFrame(RNG.normal(10.0, 2.0, (N, 3)).round(2), columns=["a", "b", "c"])
SEX, STATE, GRADE = (RNG.choice(values, N) for values in (["m", "f"], ["ill", "well"], ["low", "mid", "high"]))


def read(folder, content, label=None, **how):
    text = content if isinstance(content, str) else content.to_csv(index=False)
    (folder / "t.csv").write_text(text)
    return read_table(folder / "t.csv", label, **how)


def remedies(folder, frame, label=None, **how):
    with pytest.raises(dc.DataError) as error:
        read(folder, frame, label, **how)
    assert all(name not in dict(error.value.columns) or "one_hot" != dict(error.value.columns)[name] for name in WORDS)
    return dict(error.value.columns), str(error.value)


WORDS = ("diagnosis", "Diagnosis", "tumour class", "state", "species")


# Remedies


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (BASE.assign(diagnosis=STATE, sex=SEX), {"diagnosis": "label", "sex": "drop"}),
        (BASE.assign(sex=SEX, Diagnosis=STATE), {"Diagnosis": "label", "sex": "drop"}),
        (BASE.assign(group=SEX, **{"tumour class": GRADE}), {"tumour class": "label", "group": "drop"}),
        (BASE.assign(sex=SEX, state=STATE), {"state": "label", "sex": "drop"}),
        (BASE.assign(sex=SEX, grade=GRADE)[["sex", "a", "grade", "b"]], {"sex": "label", "grade": "drop"}),
        (BASE.assign(sex=SEX, grade=GRADE)[["a", "sex", "grade", "b"]], {"sex": "drop", "grade": "drop"}),
        (BASE.assign(sex=SEX)[["a", "sex", "b"]], {"sex": "label"}),
        (BASE.assign(sex=SEX, target=STATE == "ill"), {"sex": "drop", "target": "label"}),
        (BASE.assign(species=GRADE, target=STATE == "ill"), {"species": "label", "target": "drop"}),
    ],
)
def test_no_text_is_made_a_feature_where_the_outcome_may_be_among_it(tmp_path, frame, expected):
    found, message = remedies(tmp_path, frame)
    assert found == expected
    assert "never the outcome" in message


def test_categories_are_features_where_the_label_is_known_and_they_have_no_name_of_one(tmp_path):
    frame = BASE.assign(diagnosis=STATE, sex=SEX, species=GRADE)
    assert remedies(tmp_path, frame, "diagnosis")[0] == {"sex": "one_hot", "species": "drop"}


def test_breast_cancer_with_two_columns_of_text_is_read_by_what_is_suggested(tmp_path):
    data = load_breast_cancer(as_frame=True)
    kinds = np.where(data.target, "B", "M")
    frame = data.data.assign(diagnosis=kinds, center=np.where(np.arange(569) % 2, "Paris", "Bern"))
    found, _ = remedies(tmp_path, frame)
    drop = [name for name, remedy in found.items() if remedy == "drop"]
    (label,) = (name for name, remedy in found.items() if remedy == "label")
    table = read(tmp_path, frame, label, drop=drop)
    assert table.names == tuple(data.data.columns)
    assert table.labels.tolist() == kinds.tolist()


@pytest.mark.parametrize("one_hot", [["diagnosis"], "all"])
def test_an_outcome_that_is_made_a_feature_all_the_same_is_noted(tmp_path, one_hot):
    notes = read(tmp_path, BASE.assign(diagnosis=STATE), one_hot=one_hot).notes
    assert any("'diagnosis' looks like a label, but its categories are features" in note for note in notes)


@pytest.mark.parametrize("name", ["diagnosis", "Class", "y", "Y", "true_label", "TumorClass", "TARGET", "status"])
def test_names_of_outcomes_are_known(name):
    assert target_rank(name) is not None


@pytest.mark.parametrize("name", ["age", "blood_type", "marital status", "y1_pos", "classic", "grouping", "x", ""])
def test_names_of_features_are_none_of_outcomes(name):
    assert target_rank(name) is None


def test_a_column_that_has_no_value_is_the_first_thing_said_whatever_is_done_about_missing_values(tmp_path):
    frame = BASE.assign(note=np.nan)
    frame.loc[3, "a"] = np.nan
    for missing in ("error", "drop", "mean"):
        assert remedies(tmp_path, frame, missing=missing)[0] == {"note": "drop"}


def test_numbers_with_some_text_are_no_label(tmp_path):
    found, message = remedies(tmp_path, BASE.astype(object).replace({"b": {BASE["b"][5]: "<0.5"}}))
    assert found == {"b": "drop"}
    assert "label" not in message
    assert "leave these entries empty" in message


@pytest.mark.parametrize(
    ("given", "near"), [({"label": "A"}, "a"), ({"drop": ["wieght"]}, "weight"), ({"one_hot": ["sexx"]}, "sex")]
)
def test_the_name_that_is_most_like_an_unknown_one_is_suggested(tmp_path, given, near):
    with pytest.raises(dc.DataError, match=f"; did you mean '{near}'"):
        read(tmp_path, BASE.assign(weight=1.5, sex=SEX), **given)


def test_the_value_that_is_most_like_an_unknown_one_is_suggested(tmp_path):
    with pytest.raises(dc.ParameterError, match="did you mean 'mean'"):
        read(tmp_path, BASE, missing="men")
    with pytest.raises(dc.ParameterError, match="did you mean 'heart'"):
        dc.datasets.load("haert")
    with pytest.raises(dc.ParameterError, match="did you mean 'low_rank'"):
        dc.compare(BASE.to_numpy(), methods=["lowrank"])
    with pytest.raises(dc.ParameterError, match=r"'zzz' is not one of error, drop, mean$"):
        read(tmp_path, BASE, missing="zzz")
    read(tmp_path, BASE)
    with pytest.raises(dc.DataError, match=r"did you mean 't\.csv'"):
        read_table(tmp_path / "t.cvs")


# Notes


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"unit": 3.0}, "column 'unit' is constant and carries"),
        ({"unit": 3.0, "site": 0.1}, "columns 'unit', 'site' are constant and carry"),
        ({"a again": BASE["a"]}, "count more than once: 'a' = 'a again'. Keep one"),
        ({"d": BASE["a"], "e": BASE["a"], "f": BASE["b"]}, "'a' = 'd' = 'e', 'b' = 'f'"),
        ({"Class": RNG.integers(0, 3, N)}, "column 'Class' looks like a label, with 3 values"),
        ({"id": RNG.permutation(1000)[:N]}, "column 'id' numbers the rows"),
        ({"age": np.where(np.arange(N) % 9, RNG.integers(20, 60, N), -999)}, "column 'age' is -999 in 7 rows"),
    ],
)
def test_columns_that_mislead_are_named_in_one_note(tmp_path, columns, words):
    (note,) = read(tmp_path, BASE.assign(**columns)).notes
    assert words in note


@pytest.mark.parametrize(
    "columns",
    [
        {"class": BASE["a"] * 1.5},
        {"grade": RNG.integers(0, 3, N)},
        {"id": RNG.integers(0, 9, N)},
        {"x": -BASE["a"]},
        {"change": np.where(np.arange(N) % 9, RNG.normal(0.0, 20.0, N), -99)},
        {"class": RNG.integers(0, 1000, N)},
    ],
)
def test_columns_that_do_not_mislead_are_not_noted(tmp_path, columns):
    assert read(tmp_path, BASE.assign(**columns)).notes == ()


def test_one_missing_value_and_one_column_are_said_in_the_singular(tmp_path):
    frame = BASE.assign(sex=SEX)
    frame.loc[4, "b"] = np.nan
    notes = " ".join(read(tmp_path, frame, one_hot="all", missing="mean").notes)
    assert "column 'sex' became one binary column" in notes
    assert "replaced 1 missing value by" in notes
    assert "values" not in notes


def test_fifty_columns_of_one_name_are_one_note(tmp_path):
    text = (
        ",".join(["a"] * 50) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in RNG.random((20, 50)).round(3))
    )
    (note,) = read(tmp_path, text).notes
    assert note == "49 columns with duplicate names were renamed, for example 'a (2)'"


# What other programs write


@pytest.mark.parametrize(
    ("form", "note"),
    [("{}%", "'%'"), ("€{}", "'€'"), ("{} kg", "'kg'"), ("{} €", "'€'"), ("{} °C", "'°C'")],
)
def test_a_unit_that_all_numbers_of_a_column_have_is_left_out(tmp_path, form, note):
    table = read(tmp_path, BASE.assign(share=[form.format(value) for value in BASE["c"]]))
    np.testing.assert_array_equal(table.X[:, 3], BASE["c"])
    assert any(f"column 'share' was read without {note}" in note_ for note_ in table.notes)


@pytest.mark.parametrize("entries", [[f"P{i:03d}" for i in range(N)], ["1 kg", "1 g"] * 30, ["5%", "0.05"] * 30])
def test_names_and_units_that_differ_are_no_numbers(tmp_path, entries):
    with pytest.raises(dc.DataError, match="'share' contains text"):
        read(tmp_path, BASE.assign(share=entries))


@pytest.mark.parametrize("title", ["My study 2024\n", "My study 2024,,\nby me,,\n", "My study 2024\n\n"])
def test_a_title_above_the_names_is_left_out_and_said(tmp_path, title):
    (tmp_path / "t.csv").write_text(title + BASE.to_csv(index=False))
    book = openpyxl.Workbook()
    for row in (["My study 2024"], [], list(BASE.columns), *BASE.to_numpy().tolist()):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    for name in ("t.csv", "t.xlsx"):
        table = read_table(tmp_path / name)
        np.testing.assert_array_equal(table.X, BASE)
        assert table.names == ("a", "b", "c")
        assert "text above the header was skipped: My study 2024" in table.notes[0]


def test_a_row_of_separators_and_the_index_that_pandas_wrote_again_are_left_out(tmp_path):
    table = read(tmp_path, BASE.to_csv(index=False) + ",,\n")
    np.testing.assert_array_equal(table.X, BASE)
    assert "dropped 1 of 61 rows" in table.notes[0]
    table = read(tmp_path, BASE.reset_index().rename(columns={"index": "Unnamed: 0"}))
    assert table.names == ("a", "b", "c")


def test_a_row_with_one_value_too_many_is_named_by_its_line(tmp_path):
    lines = BASE.to_csv(index=False).splitlines()
    lines[31] += ",5"
    with pytest.raises(dc.DataError, match=r"t\.csv cannot be read: line 32 has 4 values instead of 3\. "):
        read(tmp_path, "\n".join(lines))
