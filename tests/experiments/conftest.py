import pytest
from toy import Here

import experiments.harness.sweep as runner
from experiments.harness import boundary, intervals


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder, in which cells record their measurement and its process."""
    monkeypatch.chdir(tmp_path)
    for name in ("NOTED", "PROCESSES", "HALT", "TRIES"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
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
