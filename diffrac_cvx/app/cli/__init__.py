"""The command line: ``diffrac-cvx``."""
