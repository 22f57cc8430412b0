"""Command line: one module per command, each with a function ``main``."""

EXIT_SUCCESS, EXIT_WARNING, EXIT_ERROR, EXIT_INTERRUPTED = 0, 1, 2, 130
