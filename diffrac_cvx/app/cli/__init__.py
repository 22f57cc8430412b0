"""Command line: ``diffrac-cvx``."""
