"""Memory: available memory, checks of memory requirements, and the memory of this process."""

import contextlib
import os

import numpy as np

from diffrac_cvx.errors import ResourceError


def require_memory(bytes_needed: float, what: str, remedy: str, limit: float | None = None) -> None:
    """Raise ResourceError if `bytes_needed` exceeds the limit in bytes, by default the available memory."""
    available = available_memory() if limit is None else limit
    if bytes_needed > available:
        needed = f"{bytes_needed / 1e9:.3g} GB, but only {available / 1e9:.3g} GB are available"
        raise ResourceError(f"{what} needs about {needed}. {remedy[0].upper()}{remedy[1:]}.")


def available_memory() -> float:
    """Return the available memory of the machine in bytes, or the rest of the control group's limit if that is less."""
    free = 4e9
    with contextlib.suppress(AttributeError, OSError, ValueError):
        free = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError, StopIteration, ValueError), open("/proc/meminfo") as lines:
        free = next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    group = "/sys/fs/cgroup/memory"
    with contextlib.suppress(OSError, ValueError), open(f"{group}.max") as most, open(f"{group}.current") as used:
        free = min(free, float(most.read()) - float(used.read()))
    return free


def resident_memory(which: str, process: int | None = None) -> float:
    """Return the current ("VmRSS") or peak memory ("VmHWM") of a process in bytes, NaN if the system is not Linux.

    By default it is that of this process.
    """
    path = f"/proc/{'self' if process is None else process}/status"
    with contextlib.suppress(OSError, StopIteration, ValueError), open(path) as lines:
        return next(1024.0 * float(line.split()[1]) for line in lines if line.startswith(which))
    return np.nan


def reset_peak_memory() -> float:
    """Reset the peak memory of this process, if the system supports it, and return the current memory in bytes."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return resident_memory("VmRSS")
