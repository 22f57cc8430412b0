"""``python -m diffrac_cvx.app.page [--port PORT]``: serve the page on this machine, to who knows its token."""

import argparse
import logging
import os
import runpy
import secrets
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from diffrac_cvx.app.page.computation import IDLE_WORKERS, take_worker
from diffrac_cvx.app.page.ports import HOST, require_port
from diffrac_cvx.errors import ParameterError

PAGE = Path(__file__).with_name("notebook.py")
MISSING_PACKAGES = "the page needs marimo and pandas, which are not installed: pip install 'diffrac-cvx[explore]'"
ENVIRONMENT = {"MPLBACKEND": "Agg", "MARIMO_SKIP_UPDATE_CHECK": "1"}  # no screen, no requests to the network


def arguments(port: int, token: str, *, browser: bool) -> list[str]:
    """Return marimo's arguments: no other machine reaches the page, and no other user of this one without the token."""
    options = ["--host", HOST, "--port", str(port), "--token", "--token-password", token, "--no-sandbox", "--no-check"]
    return ["marimo", "--quiet", "run", str(PAGE), *options, *([] if browser else ["--headless"])]


def main() -> None:
    """Serve the page until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m diffrac_cvx.app.page", description=__doc__)
    parser.add_argument("--port", type=int, default=2718, help="port on this machine (default: 2718)")
    parser.add_argument("--headless", action="store_true", help="open no browser; the address is printed")
    options = parser.parse_args()
    try:
        if not all(map(find_spec, ("marimo", "pandas"))):
            raise ImportError(MISSING_PACKAGES)
        require_port(options.port)
    except (ImportError, ParameterError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    os.environ.update(ENVIRONMENT)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of each message to a tab that was closed
    IDLE_WORKERS.append(take_worker())
    for module in ("diffrac_cvx.app.page.pictures", "matplotlib.pyplot"):
        import_module(module)  # pages run in this process, and do not wait for the import
    token = secrets.token_urlsafe(24)
    print(f"http://{HOST}:{options.port}/?access_token={token} (Ctrl-C ends it)", flush=True)  # noqa: T201
    # Set in this process, so that the list of processes does not show the token.
    sys.argv = arguments(options.port, token, browser=not options.headless)
    runpy.run_module("marimo", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
