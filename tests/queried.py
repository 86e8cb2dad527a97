"""The HTTP responses of a part of the system, as a monitor requests them."""

from __future__ import annotations

from http.client import HTTPConnection

ANSWER_S = 10.0


def ask(port: int, path: str, within_s: float = ANSWER_S) -> tuple[int, str]:
    """The status and the body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=within_s)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()
