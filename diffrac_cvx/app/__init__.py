"""What people see: the command line, the interactive page, reports."""
