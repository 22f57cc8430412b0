"""The port that the page is served on."""

import socket

from diffrac_cvx.errors import ParameterError

HOST = "127.0.0.1"
PORTS = 65535


def require_port(port: int) -> None:
    """Raise ParameterError unless this machine can serve on a port now.

    Raises
    ------
    ParameterError
        If there is no such port, it is taken, or this user may not serve on it.
    """
    if not 1 <= port <= PORTS:
        raise ParameterError(f"port = {port} must be between 1 and {PORTS}")
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((HOST, port))
        except OSError as error:
            raise ParameterError(f"port = {port} cannot be used ({error.strerror}); choose another") from None
