"""What is known of the memory, where the system says it and where it does not."""

import builtins
import io
import os
import sys

import numpy as np
import pytest

from diffrac_cvx.errors import ResourceError
from diffrac_cvx.machine import memory

MEMINFO = "MemTotal:  16000000 kB\nMemFree:  1000 kB\nMemAvailable:  2000000 kB\n"
GROUP = {"/sys/fs/cgroup/memory.max": "900000000\n", "/sys/fs/cgroup/memory.current": "400000000\n"}


@pytest.fixture
def system(monkeypatch):
    """A function that lets these files, and no others, be what the system says."""

    def says(files):
        def read(path, *arguments, **options):
            if str(path).startswith(("/proc", "/sys")):
                if path not in files:
                    raise FileNotFoundError(path)
                return io.StringIO(files[path])
            return real(path, *arguments, **options)

        monkeypatch.setattr(builtins, "open", read)

    real = builtins.open
    return says


def test_the_available_memory_is_what_the_system_says(system):
    system({"/proc/meminfo": MEMINFO})
    assert memory.available_memory() == 2_000_000 * 1024.0


@pytest.mark.parametrize("most", ["900000000\n", "99000000000\n", "max\n"])
def test_the_limit_of_a_control_group_counts_where_it_leaves_less(system, most):
    system({"/proc/meminfo": MEMINFO, **GROUP, "/sys/fs/cgroup/memory.max": most})
    assert memory.available_memory() == (5e8 if most.startswith("9000") else 2_000_000 * 1024.0)


@pytest.mark.parametrize(
    "files", [{}, {"/proc/meminfo": "MemTotal: 5 kB\n"}, {"/proc/meminfo": "MemAvailable: x kB\n"}]
)
def test_where_the_system_does_not_say_it_is_all_the_memory_there_is(system, monkeypatch, files):
    system(files)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", lambda name: sizes[name])
    assert memory.available_memory() == 4096.0 * 1000


def test_where_nothing_is_known_it_is_taken_to_be_four_gigabytes(system, monkeypatch):
    system({})
    monkeypatch.setattr(os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert memory.available_memory() == 4e9


def test_more_than_there_is_is_refused_with_both_numbers_and_what_to_do_instead(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2e9)
    memory.require_memory(2e9, "this", "less")
    with pytest.raises(ResourceError, match=r"this needs about 3 GB and 2 GB are available; take less"):
        memory.require_memory(3e9, "this", "take less")
    with pytest.raises(ResourceError, match=r"2 GB and 1 GB"):
        memory.require_memory(2e9, "this", "less", limit=1e9)


def test_the_memory_of_this_process_is_that_of_its_status(system):
    system({"/proc/self/status": "VmHWM:\t  300 kB\nVmRSS:\t  200 kB\n"})
    assert memory.resident("VmRSS") == 200 * 1024.0
    assert memory.resident("VmHWM") == 300 * 1024.0


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1.0), ("linux", 1024.0)])
def test_elsewhere_it_is_the_peak_in_the_units_of_the_system(system, monkeypatch, platform, unit):
    resource = pytest.importorskip("resource")
    system({})
    monkeypatch.setattr(sys, "platform", platform)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert unit * peak <= memory.resident("VmRSS") <= unit * 1.5 * peak


def test_where_no_peak_is_known_either_there_is_no_number(system, monkeypatch):
    system({})
    monkeypatch.setitem(sys.modules, "resource", None)
    assert np.isnan(memory.resident("VmRSS"))
