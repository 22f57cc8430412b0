"""User interfaces: command line, interactive page and reports."""
