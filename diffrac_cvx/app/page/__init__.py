"""Interactive page: ``python -m diffrac_cvx.app.page``."""
