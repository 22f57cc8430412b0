"""Memory information on systems that report it and on others."""

import builtins
import io
import os

import numpy as np
import pytest

from diffrac_cvx.errors import ResourceError
from diffrac_cvx.machine import memory

MEMINFO = "MemTotal:  16000000 kB\nMemFree:  1000 kB\nMemAvailable:  2000000 kB\n"
GROUP = {"/sys/fs/cgroup/memory.current": "400000000\n"}


@pytest.fixture
def system(monkeypatch):
    """Function that replaces the files of the system by the given ones."""

    def set_files(files):
        def read(path, *arguments, **options):
            if str(path).startswith(("/proc", "/sys")):
                if path not in files:
                    raise FileNotFoundError(path)
                return io.StringIO(files[path])
            return real(path, *arguments, **options)

        monkeypatch.setattr(builtins, "open", read)

    real = builtins.open
    return set_files


@pytest.mark.parametrize(
    ("most", "available"),
    [(None, 2.048e9), ("900000000\n", 5e8), ("99000000000\n", 2.048e9), ("max\n", 2.048e9)],
)
def test_the_available_memory_is_what_the_system_says_or_the_limit_of_a_control_group_leaves(system, most, available):
    system({"/proc/meminfo": MEMINFO} | ({} if most is None else GROUP | {"/sys/fs/cgroup/memory.max": most}))
    assert memory.available_memory() == available


@pytest.mark.parametrize(
    "files", [{}, {"/proc/meminfo": "MemTotal: 5 kB\n"}, {"/proc/meminfo": "MemAvailable: x kB\n"}]
)
def test_where_the_system_does_not_say_it_is_all_the_memory_there_is_and_else_four_gigabytes(
    system, monkeypatch, files
):
    system(files)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", lambda name: sizes[name])
    assert memory.available_memory() == 4096.0 * 1000
    monkeypatch.setattr(os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert memory.available_memory() == 4e9


def test_more_than_there_is_is_refused_with_both_numbers_and_what_to_do_instead(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2e9)
    memory.require_memory(2e9, "this", "less")
    with pytest.raises(ResourceError, match=r"this needs about 3 GB, but only 2 GB are available. Take less"):
        memory.require_memory(3e9, "this", "take less")
    with pytest.raises(ResourceError, match=r"2 GB, but only 1 GB"):
        memory.require_memory(2e9, "this", "less", limit=1e9)


def test_the_memory_of_this_process_is_that_of_its_status_and_elsewhere_no_number(system):
    system({"/proc/self/status": "VmHWM:\t  300 kB\nVmRSS:\t  200 kB\n"})
    assert memory.resident_memory("VmRSS") == 200 * 1024.0
    assert memory.resident_memory("VmHWM") == 300 * 1024.0
    system({})
    assert np.isnan(memory.resident_memory("VmRSS"))
