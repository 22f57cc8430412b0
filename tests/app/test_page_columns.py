"""Page: feature groups and nonnegative coefficients, and the Python code for them."""

import numpy as np
import pytest

pytest.importorskip("marimo")

import diffrac_cvx as dc
from diffrac_cvx.app.page import computation
from diffrac_cvx.app.page.computation import CLUSTERS, Outcome, Run, evaluate, expression_of, namespace_of
from diffrac_cvx.app.page.data import PlantedSource, UploadedSource
from diffrac_cvx.app.page.pictures import make_picture
from diffrac_cvx.app.page.solve_choice import PageSetting, plan_solves
from diffrac_cvx.app.page.summary import find_summary


def rows():
    rng = np.random.default_rng(0)
    for i in range(30):
        sick = i % 2
        yield f"{rng.normal(4 * sick):.3f},{rng.normal(4 * sick):.3f},{rng.normal():.3f},{'abc'[rng.integers(3)]}"


CONTENT = ("dose_1,dose_2,noise,kind\n" + "\n".join(rows()) + "\n").encode()


@pytest.fixture(scope="module")
def source():
    return UploadedSource(CONTENT, "mine.csv", one_hot=["kind"])


@pytest.fixture(scope="module")
def data(source):
    return source.load()


def do(call):
    return call.function(*call.arguments, **call.options)


def known_by_code(source, setting, folder):
    (folder / "mine.csv").write_bytes(CONTENT)
    names = {"dc": dc, "np": np}
    exec("\n".join([*source.code(), *setting.code()]), names)
    return names


def test_groups_and_signs_are_what_the_python_of_the_page_says(source, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for grouped, count in (("category", 4), ("prefix", 3)):
        setting = PageSetting(lam=0.05, grouped=grouped).on_columns(data)
        assert len(setting.groups) == count
        names = known_by_code(source, setting, tmp_path)
        assert names["penalty"].groups == setting.penalty.groups
        np.testing.assert_allclose(names["penalty"].c, setting.penalty.c, rtol=1e-12)
        for solve in plan_solves(data, setting, ["(15)"], ("low_rank", "CLARABEL")):
            assert do(solve.call).value == pytest.approx(eval(solve.code, names).value, abs=1e-9), solve.name


def test_the_answer_names_groups_and_signs_say_which_cluster_is_which():
    source = UploadedSource(CONTENT, "mine.csv", drop=["kind"])
    data = source.load()
    for sign in ("dose_1", ""):
        setting = PageSetting(lam=0.05, grouped="none" if sign else "prefix", nonnegative=sign).on_columns(data)
        (solve,) = plan_solves(data, setting, ["(15)"], ["low_rank"])
        outcome = Outcome(source, data, setting, (Run(solve, do(solve.call)),))
        found = find_summary(outcome, "", "kmeans_centered")
        said = any(text.startswith("Selected feature groups, 1 of 2: dose (2 columns)") for text in found.sentences)
        assert said == (not sign)
        if sign:
            assert found.labels @ found.scores > 0.0
            assert found.labels @ data.X[:, 0] > 0.0


@pytest.mark.slow
def test_a_path_and_more_clusters_keep_the_groups(source, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    setting = PageSetting(lam=0.05, tol=1e-2, grouped="category").on_columns(data)
    expression = expression_of("lambda path", setting, ()).replace("21", "3")
    path = evaluate(expression, namespace_of(data, setting))
    assert path.groups.names == ("dose_1", "dose_2", "noise", "kind")
    names = known_by_code(source, setting, tmp_path)
    np.testing.assert_allclose(eval(expression, names).value, path.value, atol=1e-9)
    picture = make_picture("lambda_path", Outcome(source, data, setting, (), {"lambda path": path}))
    assert len(picture.execute()["display"].lines_["groups"]) == 4
    many = PageSetting(lam=0.05, tol=1e-2, n_clusters=3, grouped="category").on_columns(data)
    with pytest.warns(dc.DegenerateDataWarning):  # the clusters are the categories
        model = evaluate(expression_of(CLUSTERS, many, ()), namespace_of(data, many))
    assert model._penalty.groups == many.penalty.groups
    np.testing.assert_allclose(model._penalty.c, many.penalty.c)


def test_what_takes_no_groups_or_signs_says_so_and_names_are_checked(data):
    setting = PageSetting(lam=0.05, grouped="category").on_columns(data)
    (refused,) = plan_solves(data, setting, ["(8)"], ["CLARABEL"])
    assert refused.call is None
    signs = PageSetting(nonnegative="noise,dose_1").on_columns(data)
    (refused,) = plan_solves(data, signs, ["(8)"], ["CLARABEL"])
    assert "it takes no sign constraints; select (11) or (15)" in refused.refusal
    with pytest.raises(dc.ParameterError, match="nonnegative names 'dose1', which is not a column; did you mean"):
        PageSetting(nonnegative="dose1").on_columns(data)
    assert PageSetting(grouped="prefix").on_columns(PlantedSource(d=3).load()).groups == ()
    many = PageSetting(n_clusters=3, nonnegative="noise").on_columns(data)
    with pytest.raises(dc.ParameterError, match="it is not available for n_clusters = 3"):
        evaluate(expression_of(computation.CLUSTERS, many, ()), namespace_of(data, many))
