"""The machine: time, memory, threads, processes and files."""
