"""One corpus of raw requests through the fast path and aiohttp: both return the same bytes."""

from __future__ import annotations

import pytest

from tests.services.query.http.instance import Instance, request
from tests.services.query.http.test_connection import BATCH, GET, both, exchanged

KEY = "/v1/states/flights/UA1"
MANY = "/v1/states/flights:batchGet"
ENDLESS = b": 100000000\r\n", b"chunked\r\n"
"""Announces a body that does not arrive."""
LINES = (
    "GET {path} HTTP/1.1",
    "GET {path} HTTP/1.0",
    "GET {path} HTTP/2.0",
    "GET {path} HTTP/1.2",
    "GET {path} HTTP/0.9",
    "GET {path} http/1.1",
    "GET {path} HTTP/1.1 ",
    "GET {path}",
    "GET  {path} HTTP/1.1",
    "GET\t{path} HTTP/1.1",
    " GET {path} HTTP/1.1",
    "get {path} HTTP/1.1",
    "HEAD {path} HTTP/1.1",
    "OPTIONS {path} HTTP/1.1",
    "PUT {path} HTTP/1.1",
    "CONNECT localhost:80 HTTP/1.1",
    "PRI * HTTP/2.0",
    "GET {path}#part HTTP/1.1",
    "GET {path}? HTTP/1.1",
    "GET {path}%2 HTTP/1.1",
    "GET {path}%00 HTTP/1.1",
    "GET {path};x=1 HTTP/1.1",
    "GET {path}/../UA1 HTTP/1.1",
    "GET /{path} HTTP/1.1",
    "GET http://localhost{path} HTTP/1.1",
)
HEADERS = (
    "Connection: close",
    "Connection: Close",
    "Connection: keep-alive",
    "Connection: keep-alive, close",
    "Connection: upgrade",
    "Proxy-Connection: close",
    "Proxy-Connection: keep-alive",
    "Keep-Alive: timeout=5",
    "Content-Length: 0",
    "Content-Length: 00",
    "Content-Length: 5",
    "Content-Length: +0",
    "Content-Length: -1",
    "Content-Length: 0, 0",
    "Content-Length: 100000000",
    "Content-Length: 99999999999999999999",
    "Content-Length:",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip, chunked",
    "Content-Encoding: gzip",
    "Upgrade: h2c",
    "Upgrade: websocket",
    "TE: trailers",
    "Trailer: x",
    "Host: localhost",
    "Host: evil.example",
    "Origin: https://evil.example",
    "Origin: http://localhost",
    "User-Agent: a\r\nUser-Agent: b",
    "X: a\r\nX: b",
    "X: a\r\n b",
    "X : a",
    "X:a",
    "X:",
    ": a",
    "X",
    "X: \x01",
    "X: \x7f",
    "X: \xe4",
    "X: a\nY: b",
    "X: a\rY: b",
    "X\xe4: b",
    "Sec-WebSocket-Key1: x",
    "If-None-Match: *",
    "If-None-Match: *\r\nIf-None-Match: x",
    "Authorization: Bearer x",
    "Stateloop-Hop: 1",
    "Cookie: a=b",
    "\r\n".join(f"X-{number}: y" for number in range(90)),
    "\r\n".join(f"X-{number}: y" for number in range(150)),
    "\r\n".join(f"X{number}: y" for number in range(700)),
    "X: " + "y" * 8_000,
    "X: " + "y" * 9_000,
)
BEHIND = {
    "another": GET,
    "the same in 1.0": b"GET " + KEY.encode() + b" HTTP/1.0\r\n\r\n",
    "the same in 2.0": b"GET " + KEY.encode() + b" HTTP/2.0\r\n\r\n",
    "garbage": b"\x16\x03\x01\r\n\r\n",
    "empty lines": b"\r\n\r\n",
    "a bare line end": b"\n",
    "half a request": GET[:30],
}
BODIES = {
    "short": BATCH[:-1],
    "long": BATCH + b"x",
    "long by a request": BATCH + GET,
    "large": b'{"keys":["' + b"k" * 70_000 + b'"]}',
    "with line ends": b'{"keys":\r\n\r\n\r\n\r\n["UA1"]}',
}


def _get(line: str, header: str = "") -> bytes:
    lines = [line.format(path=KEY), *(["Host: localhost"] if "Host:" not in header else []), *filter(None, [header])]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _batch(header: str, body: bytes) -> bytes:
    return f"POST {MANY} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode("latin-1") + body


def _corpus() -> dict[str, bytes]:
    """Return requests alone, with a header, with data after them, and batches with a wrong length."""
    of_batch = f"Content-Length: {len(BATCH)}"
    found = {f"line {line}": _get(line) for line in LINES}
    found |= {f"get with {header[:40]!r} {len(header)}": _get(LINES[0], header) for header in HEADERS}
    found |= {
        f"batch with {header[:40]!r} {len(header)}": _batch(f"{of_batch}\r\n{header}", BATCH) for header in HEADERS
    }
    for name, behind in BEHIND.items():
        found[f"get, then {name}"] = GET + behind
        found[f"1.0, then {name}"] = _get(LINES[1]) + behind
        found[f"2.0, then {name}"] = _get(LINES[2]) + behind
        found[f"close, then {name}"] = _get(LINES[0], "Connection: close") + behind
        found[f"batch, then {name}"] = _batch(of_batch, BATCH) + behind
        found[f"a page, then {name}"] = request("/v1/states/flights?limit=1") + behind
    found |= {f"batch, {name} body": _batch(of_batch, body) for name, body in BODIES.items()}
    found |= {f"batch of its length, {name}": _batch(f"Content-Length: {len(b)}", b) for name, b in BODIES.items()}
    bare = _get(LINES[0]).replace(b"\r\n", b"\n")
    found["batch of nothing"] = _batch("Content-Length: 0", b"")
    return found | {"bare line ends": bare, "bare line ends, then another": bare + GET}


CORPUS = _corpus()


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 180


@pytest.mark.slow
async def test_both_paths_return_the_same_bytes() -> None:
    differ: dict[str, tuple[bytes, bytes]] = {}
    async with both() as (hot, plain):
        for name, sent in CORPUS.items():
            received, expected = await _answer(hot, sent), await _answer(plain, sent)
            if received != expected or not received.startswith(b"HTTP/"):
                differ[name] = received, expected
    assert differ == {}


async def _answer(instance: Instance, data: bytes) -> bytes:
    """Send the request and return the bytes of its responses; of an endless body, only the first response."""
    if not any(one in data for one in ENDLESS):
        return await exchanged(instance, [data])
    async with instance.connected() as connection:
        connection.send(data)
        return (await connection.response()).raw
