import pytest
from toy import Here, forget_noted, run, without_seconds

import experiments.harness.sweep as runner
from experiments.harness import boundary, intervals


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder, in which cells record their measurement and its process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOTED", str(tmp_path / "noted"))
    (tmp_path / "noted").touch()
    return tmp_path


@pytest.fixture
def here(monkeypatch):
    """Cells are measured in this process."""
    monkeypatch.setattr(runner, "Worker", Here)


@pytest.fixture
def few_draws(monkeypatch):
    """Few bootstrap samples, if the width of intervals does not matter."""
    for module in (boundary, intervals):
        monkeypatch.setattr(module, "DRAWS", 20)


@pytest.fixture
def expected(folder, capsys):
    """The table of an undisturbed run, stored where the committed one would be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "Worker", Here)
        assert run() == 0
    capsys.readouterr()
    forget_noted()
    return without_seconds()
