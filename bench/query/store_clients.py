"""The clients that read keys of a service: over HTTP, or in Redis's protocol."""

import http.client
import socket
from collections.abc import Sequence
from http import HTTPStatus
from typing import Protocol

import orjson
from typing_extensions import override

from bench.query.records import STATE

WITHIN_S = 10.0


class StoreClient(Protocol):
    """One connection to a service."""

    def read(self, key: str) -> bytes | None:
        """The answer for a key, as it came; None if there is none. Raises OSError while the store does not answer."""
        ...

    def read_many(self, keys: Sequence[str]) -> list[bytes]:
        """The answers for many, in their order; empty for a key without one. Raises OSError."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class HttpStoreClient(StoreClient):
    """Asks the query service."""

    def __init__(self, port: int, state: str = STATE) -> None:
        self._state = state
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)

    @override
    def read(self, key: str) -> bytes | None:
        status, body = self._ask("GET", f"/v1/states/{self._state}/{key}", None)
        return body if status == HTTPStatus.OK else None

    @override
    def read_many(self, keys: Sequence[str]) -> list[bytes]:
        status, body = self._ask("POST", f"/v1/states/{self._state}:batchGet", orjson.dumps({"keys": list(keys)}))
        if status != HTTPStatus.OK:
            raise ConnectionError(f"{status}: {body[:100]!r}")
        return [orjson.dumps(answer) for answer in orjson.loads(body)["answers"]]

    @override
    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        try:
            self._connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            self._connection.close()
            raise ConnectionError(str(error)) from error
        except OSError:
            self._connection.close()
            raise


class RedisStoreClient(StoreClient):
    """Asks Redis, in as much of its protocol as GET and MGET need."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    @override
    def read(self, key: str) -> bytes | None:
        return self.command(b"GET", key.encode())[0]

    @override
    def read_many(self, keys: Sequence[str]) -> list[bytes]:
        return [value or b"" for value in self.command(b"MGET", *(key.encode() for key in keys))]

    def command(self, *words: bytes) -> list[bytes | None]:
        """Return the answer; a plain one is a list of one. Raises OSError."""
        try:
            self._connected().sendall(encoded(*words))
            head = self._reply.readline()
            if head[:1] == b"*":
                return [self._text(self._reply.readline()) for _ in range(int(head[1:]))]
            return [self._text(head)]
        except (OSError, ValueError) as error:
            self.close()
            raise ConnectionError(str(error)) from error

    def apply(self, commands: bytes, count: int) -> None:
        """Send a transaction of `count` commands, and read all its answers. Raises OSError."""
        self._connected().sendall(commands)
        heads = [self._reply.readline() for _ in range(2 * count + 2)]
        if any(head[:1] in (b"-", b"") for head in heads):
            raise ConnectionError(next(head for head in heads if head[:1] in (b"-", b"")).decode())

    @override
    def close(self) -> None:
        if self._socket:
            self._reply.close()
            self._socket.close()
        self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), WITHIN_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._reply = self._socket.makefile("rb")
        return self._socket

    def _text(self, head: bytes) -> bytes | None:
        """A bulk string; of an error it raises ValueError, and other words are given as they are."""
        if head[:1] in (b"-", b""):
            raise ValueError(head.decode() or "it hung up")
        if head[:1] != b"$":
            return head[1:-2]
        length = int(head[1:])
        return None if length < 0 else self._reply.read(length + 2)[:-2]


def encoded(*words: bytes) -> bytes:
    """A command as Redis reads it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
