"""System resources: time, memory, threads, processes and files."""
