"""``python -m diffrac_cvx.app.page [--port PORT]``: serve the page on this machine, protected by a token."""

import argparse
import logging
import os
import runpy
import secrets
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from diffrac_cvx.app.page.ports import HOST, require_port
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.solvers.reference import installed_solvers

PAGE = Path(__file__).with_name("notebook.py")
MISSING_PACKAGES = "the page needs the packages marimo and pandas. Run: pip install 'diffrac-cvx[explore]'"
ENVIRONMENT = {"MPLBACKEND": "Agg", "MARIMO_SKIP_UPDATE_CHECK": "1"}  # no screen, no network requests


def arguments(port: int, token: str, *, browser: bool) -> list[str]:
    """Return the arguments of marimo: only this machine can reach the page, and only with the token."""
    options = ["--host", HOST, "--port", str(port), "--token", "--token-password", token, "--no-sandbox", "--no-check"]
    return ["marimo", "--quiet", "run", str(PAGE), *options, *([] if browser else ["--headless"])]


def main() -> None:
    """Serve the page until interrupted."""
    parser = argparse.ArgumentParser(
        prog="diffrac-cvx explore", description="Serve the page on this machine, protected by a token."
    )
    parser.add_argument("--port", type=int, default=2718, help="port on this machine (default: 2718)")
    parser.add_argument("--headless", action="store_true", help="do not open a browser; the address is printed")
    options = parser.parse_args()
    try:
        if not all(map(find_spec, ("marimo", "pandas"))):
            raise ImportError(MISSING_PACKAGES)
        require_port(options.port)
    except (ImportError, ParameterError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    os.environ.update(ENVIRONMENT)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # suppress warnings on messages to closed tabs
    for module in ("diffrac_cvx.app.page.views", "matplotlib.pyplot"):
        import_module(module)  # pages run in this process; import before the first one
    installed_solvers()  # imports CVXPY
    token = secrets.token_urlsafe(24)
    print(f"http://{HOST}:{options.port}/?access_token={token} (press Ctrl-C to stop)", flush=True)  # noqa: T201
    # Set in this process to keep the token out of the process list.
    sys.argv = arguments(options.port, token, browser=not options.headless)
    runpy.run_module("marimo", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
