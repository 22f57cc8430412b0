"""The interactive page: ``python -m diffrac_cvx.app.page``."""
