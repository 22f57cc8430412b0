"""The port that the page is served on."""

import os
import socket

from diffrac_cvx.errors import ParameterError

HOST = "127.0.0.1"
MAX_PORT = 65535


def require_port(port: int) -> None:
    """Raise where there is no such port, it is taken, or this user may not serve on it."""
    if not 1 <= port <= MAX_PORT:
        raise ParameterError(f"port = {port} is no port: choose one from 1024 to {MAX_PORT}, such as --port 2718")
    with socket.socket() as attempt:
        if os.name == "posix":  # elsewhere this option would take the port from the program that has it
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((HOST, port))
        except PermissionError:
            reason = f"is reserved on this machine: choose one from 1024 to {MAX_PORT}"
            raise ParameterError(f"port = {port} {reason}") from None
        except OSError:
            other = port + 1 if port < MAX_PORT else port - 1
            reason = f"is in use, perhaps by another page: end that one, or choose another: --port {other}"
            raise ParameterError(f"port = {port} {reason}") from None
