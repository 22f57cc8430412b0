"""Port of the page."""

import os
import socket

from diffrac_cvx.errors import ParameterError

HOST = "127.0.0.1"
MAX_PORT = 65535


def require_port(port: int) -> None:
    """Raise `ParameterError` if a port is invalid, in use, or reserved."""
    if not 1 <= port <= MAX_PORT:
        raise ParameterError(
            f"port = {port} is not a valid port. Choose one from 1024 to {MAX_PORT}, such as --port 2718."
        )
    with socket.socket() as attempt:
        if os.name == "posix":  # on other systems this option would steal a used port
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((HOST, port))
        except PermissionError:
            reason = f"is reserved on this machine. Choose one from 1024 to {MAX_PORT}."
            raise ParameterError(f"port = {port} {reason}") from None
        except OSError:
            other = port + 1 if port < MAX_PORT else port - 1
            reason = f"is in use, perhaps by another page. Stop that one, or use --port {other}."
            raise ParameterError(f"port = {port} {reason}") from None
