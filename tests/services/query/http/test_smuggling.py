"""Requests of which a proxy may see another end than the service.

Each is refused, and the connection closed, so that what follows is never read as a request.
"""

from __future__ import annotations

import re

import pytest

from services.query.http import routes
from tests.services.query.http.instance import answering
from tests.services.query.http.test_connection import BATCH, GET, a_world, exchanged

MANY = "/v1/states/flights:batchGet"
HIDDEN = b"GET /v1/states/flights/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BATCH), BATCH)
LENGTH = f"Content-Length: {len(CHUNKED)}"
ENDS = {
    "both, the length first": f"{LENGTH}\r\nTransfer-Encoding: chunked",
    "both, the encoding first": f"Transfer-Encoding: chunked\r\n{LENGTH}",
    "two lengths": f"Content-Length: {len(BATCH)}\r\nContent-Length: {len(CHUNKED)}",
    "the same length twice": f"{LENGTH}\r\n{LENGTH}",
    "a list of lengths": f"Content-Length: {len(CHUNKED)}, {len(CHUNKED)}",
    "a length with a sign": f"Content-Length: +{len(CHUNKED)}",
    "a negative length": "Content-Length: -1",
    "a length in hex": f"Content-Length: {len(CHUNKED):#x}",
    "a length with an underscore": "Content-Length: 1_0",
    "a length of other digits": "Content-Length: \u00b2",
    "a length beyond 64 bits": "Content-Length: 18446744073709551617",
    "a folded length": f"Content-Length:\r\n {len(CHUNKED)}",
    "a space before the colon": f"Content-Length : {len(CHUNKED)}",
    "the encoding twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "chunked twice": "Transfer-Encoding: chunked, chunked",
    "chunked first": "Transfer-Encoding: chunked, identity",
    "an unknown encoding": "Transfer-Encoding: xchunked",
    "an encoding in quotes": 'Transfer-Encoding: "chunked"',
    "a folded encoding": "Transfer-Encoding:\r\n chunked",
    "an encoding with a vertical tab": "Transfer-Encoding: \x0bchunked",
    "an encoding after a space": " Transfer-Encoding: chunked",
    "an encoding before a space": "Transfer-Encoding : chunked",
    "an encoding behind a bare line feed": f"{LENGTH}\r\nX: a\nTransfer-Encoding: chunked",
    "an encoding behind a bare carriage return": f"{LENGTH}\r\nX: a\rTransfer-Encoding: chunked",
    "an encoding behind a zero byte": f"{LENGTH}\r\nX: a\x00Transfer-Encoding: chunked",
    "a name that ends with a zero byte": f"{LENGTH}\r\nTransfer-Encoding\x00: chunked",
}
BODIES = {
    "a size with a sign": b"+%x\r\n%s\r\n0\r\n\r\n" % (len(BATCH), BATCH),
    "a size with a prefix": b"0x%x\r\n%s\r\n0\r\n\r\n" % (len(BATCH), BATCH),
    "a size with an underscore": b"0_%x\r\n%s\r\n0\r\n\r\n" % (len(BATCH), BATCH),
    "a negative size": b"-1\r\n%s\r\n0\r\n\r\n" % BATCH,
    "no size": b"\r\n%s\r\n0\r\n\r\n" % BATCH,
    "a size beyond 64 bits": b"1%016x\r\n%s\r\n0\r\n\r\n" % (len(BATCH), BATCH),
    "a size behind a space": b" %x\r\n%s\r\n0\r\n\r\n" % (len(BATCH), BATCH),
    "an extension with a bare line feed": b"%x;x=\n%s\r\n0\r\n\r\n" % (len(BATCH), BATCH),
    "a chunk that is too long": b"%x\r\n%s\r\n0\r\n\r\n" % (len(BATCH) - 2, BATCH),
    "no line end after a chunk": b"%x\r\n%s0\r\n\r\n" % (len(BATCH), BATCH),
    "a bare line feed after the size": b"%x\n%s\r\n0\r\n\r\n" % (len(BATCH), BATCH),
    "a bare line feed after a chunk": b"%x\r\n%s\n0\r\n\r\n" % (len(BATCH), BATCH),
}


def _post(headers: str, body: bytes = CHUNKED) -> bytes:
    return f"POST {MANY} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n".encode("latin-1") + body


AMBIGUOUS = {name: _post(headers) for name, headers in ENDS.items()}
AMBIGUOUS |= {name: _post("Transfer-Encoding: chunked", body) for name, body in BODIES.items()}
AMBIGUOUS |= {
    "a bare line feed at the end of the head": GET.replace(b"\r\n\r\n", b"\n\n"),
    "bare line feeds": GET.replace(b"\r\n", b"\n"),
    "two hosts": GET.replace(b"\r\n\r\n", b"\r\nHost: evil.example\r\n\r\n"),
    "a host behind a space": GET.replace(b"\r\n\r\n", b"\r\n Host: evil.example\r\n\r\n"),
    "a head without end": GET[:-4] + b"\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    "very many headers": GET[:-4] + b"\r\nX: y" * 20_000 + b"\r\n\r\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("hot", [True, False], ids=["fast path", "aiohttp"])
async def test_what_is_hidden_in_an_ambiguous_request_is_never_answered(
    monkeypatch: pytest.MonkeyPatch, *, hot: bool
) -> None:
    monkeypatch.setattr(routes, "BODY_S", 0.1)
    answered: dict[str, list[bytes]] = {}
    async with answering(a_world().dependencies, hot=hot) as instance:
        for name, sent in AMBIGUOUS.items():
            alone = STATUS.findall(await exchanged(instance, [sent + HIDDEN]))
            _, *behind = STATUS.findall(await exchanged(instance, [GET + sent + HIDDEN]))
            answered |= {name: alone, f"{name}, behind another": behind}
    assert {name: statuses for name, statuses in answered.items() if statuses != [b"400"]} == {}


async def test_a_valid_chunked_body_is_read_and_so_is_what_follows() -> None:
    """The requests above are refused for what is wrong with them, and for nothing else."""
    async with answering(a_world().dependencies, hot=True) as instance:
        received = await exchanged(instance, [_post("Transfer-Encoding: chunked") + HIDDEN])
    assert STATUS.findall(received) == [b"200", b"404", b"200"]
