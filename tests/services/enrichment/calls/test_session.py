"""The transport against a server that answers with given bytes."""

from __future__ import annotations

import asyncio
import gzip
import socket
import time
import traceback
import zlib
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import pytest

from contracts import PermanentCallError, RetryableCallError
from services.enrichment.calls.transport import HttpTransport, Post
from tests.deadline import DEADLINE_S
from tests.services.enrichment.calls.calling import BOUNDS, Names
from tests.services.enrichment.calls.straying import LENGTH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
END = b"\r\n\r\n"
ZIPPED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
SMALL, BOMB = gzip.compress(b"{}", mtime=0), gzip.compress(b" " * 101, mtime=0)
UPGRADED = b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Server:
    """Answer the requests of each connection with these bytes in turn; None closes the connection instead."""

    def __init__(self, *connections: list[bytes | None]) -> None:
        self.connections = list(connections)
        self.requests: list[bytes] = []
        self.left = asyncio.Event()
        """Whether a client ended a connection."""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for answer in self.connections.pop(0):
                head = await reader.readuntil(END)
                length = sum(int(one) for one in LENGTH.findall(head))
                self.requests.append(head + await reader.readexactly(length))
                if answer is None:
                    return
                writer.write(answer)
                if b"Content-Length" not in answer and b"chunked" not in answer:
                    return
            await reader.read()
            self.left.set()
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()


@asynccontextmanager
async def transport(
    server: Server, headers: dict[str, str] | None = None, largest: int = 100
) -> AsyncIterator[HttpTransport]:
    async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        bounds = BOUNDS.__class__(1, largest, 0, BOUNDS.allowed, headers)
        async with HttpTransport(f"http://127.0.0.1:{port}/base", bounds, clock=time.monotonic) as client:
            yield client


async def bodies(server: Server, calls: int) -> list[bytes]:
    async with transport(server) as client:
        return [(await client.get("/x", 5.0)).body for _ in range(calls)]


async def test_a_connection_is_reused_and_requests_are_complete() -> None:
    server = Server([OK, OK])
    async with transport(server, {"Authorization": "Bearer canary"}) as client:
        for _ in range(2):
            assert (await client.get("/x?y=%20", 5.0)).body == b"{}"
    head, *lines = server.requests[1].decode().split("\r\n")
    assert head == "GET /base/x?y=%20 HTTP/1.1"
    assert lines[0].startswith("Host: 127.0.0.1:")
    assert lines[1:] == ["Accept: application/json", "User-Agent: stateloop", "Authorization: Bearer canary", "", ""]


@pytest.mark.parametrize(
    ("base", "path", "host"),
    [
        ("http://api.example.com:{port}/v1", b"/v1", b"api.example.com:{port}"),
        ("http://API.Example.com:{port}/v1/", b"/v1", b"api.example.com:{port}"),
        ("http://bücher.example:{port}", b"", b"xn--bcher-kva.example:{port}"),
    ],
)
async def test_a_path_begins_behind_the_host_however_that_is_written(base: str, path: bytes, host: bytes) -> None:
    server = Server([OK])
    async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        names = Names(["127.0.0.1"])
        async with HttpTransport(base.format(port=port), BOUNDS, clock=time.monotonic, resolver=names) as client:
            await client.get("/x", 5.0)
    line, sent, *_ = server.requests[0].split(b"\r\n")
    assert (line, sent) == (b"GET " + path + b"/x HTTP/1.1", b"Host: " + host.replace(b"{port}", b"%d" % port))


async def test_characters_of_a_declared_path_are_encoded() -> None:
    server = Server([OK])
    async with transport(server) as client:
        await client.get("/stra\u00dfe/a%2Fb?c=d", 5.0)
    assert server.requests[0].startswith(b"GET /base/stra%C3%9Fe/a%2Fb?c=d HTTP/1.1")


async def test_a_header_of_the_user_takes_the_place_of_ours() -> None:
    server = Server([OK])
    async with transport(server, {"accept": "text/json"}) as client:
        await client.get("/x", 5.0)
    assert server.requests[0].lower().count(b"\r\naccept: ") == 1
    assert b"\r\naccept: text/json" in server.requests[0]


@contextmanager
def silent(host: str, port: int) -> Iterator[int]:
    """An address that does not answer: its queue is full, so the next connection waits. Gives its port."""
    with socket.socket() as deaf:
        deaf.bind((host, port))
        deaf.listen(0)
        with socket.create_connection(deaf.getsockname()), socket.socket() as second:
            second.setblocking(False)  # noqa: FBT003
            second.connect_ex(deaf.getsockname())
            yield deaf.getsockname()[1]


def at(names: Names, port: int) -> HttpTransport:
    """A transport for a name that has these addresses."""
    return HttpTransport(f"http://api.test:{port}", BOUNDS, clock=time.monotonic, resolver=names)


async def test_an_address_that_is_silent_does_not_hold_up_the_next() -> None:
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        port = here.getsockname()[1]
        with silent("127.0.0.2", port):
            here.close()
            names = Names(["127.0.0.2", "127.0.0.1"])
            async with await asyncio.start_server(Server([OK]), "127.0.0.1", port), at(names, port) as client:
                assert (await client.get("/x", 60.0)).body == b"{}"


async def test_there_is_no_more_time_for_a_connection_than_for_its_call() -> None:
    with silent("127.0.0.1", 0) as port:
        async with at(Names(["127.0.0.1"]), port) as client, asyncio.timeout(DEADLINE_S):
            with pytest.raises(RetryableCallError, match=r"no answer within 0.2 s"):
                await client.get("/x", 0.2)


async def test_nor_for_its_turn() -> None:
    server = Server([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"])
    async with transport(server) as client, asyncio.TaskGroup() as tasks, asyncio.timeout(DEADLINE_S):
        slow = tasks.create_task(client.get("/slow", 60.0))
        while not server.requests:  # noqa: ASYNC110
            await asyncio.sleep(0)
        with pytest.raises(RetryableCallError, match=r"no answer within 0.2 s"):
            await client.get("/x", 0.2)
        slow.cancel()


async def test_the_addresses_of_a_name_take_turns() -> None:
    first, second = Server([OK, OK]), Server([OK, OK])
    last = OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")
    first.connections, second.connections = [[last], [last]], [[last], [last]]
    async with await asyncio.start_server(first, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with (
            await asyncio.start_server(second, "127.0.0.2", port),
            at(Names(["127.0.0.1", "127.0.0.2"]), port) as client,
        ):
            for _ in range(4):
                await client.get("/x", 5.0)
    assert (len(first.requests), len(second.requests)) == (2, 2)


async def test_one_that_is_to_end_is_not_used_again() -> None:
    last = OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")
    server = Server([last, None], [OK])
    assert await bodies(server, 2) == [b"{}", b"{}"]
    assert len(server.requests) == 2


@pytest.mark.parametrize("repeated", [b'"Bearer can/ary"', b'{"invalid":"can/ary"}', rb'"can\/ary"'])
async def test_an_answer_that_repeats_a_secret_is_not_given(repeated: bytes) -> None:
    echo = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(repeated) + repeated
    async with transport(Server([echo]), {"Authorization": "Bearer can/ary"}) as client:
        with pytest.raises(PermanentCallError, match="repeats a secret"):
            await client.get("/x", 5.0)


async def test_cookies_of_a_response_are_not_sent_back() -> None:
    server = Server([OK.replace(END, b"\r\nSet-Cookie: a=b; Path=/" + END), OK])
    async with (
        await asyncio.start_server(server, "127.0.0.1", 0) as listening,
        at(Names(["127.0.0.1"]), listening.sockets[0].getsockname()[1]) as client,
    ):
        for _ in range(2):
            await client.get("/x", 5.0)
    assert b"cookie" not in server.requests[1].lower()


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert await bodies(Server([OK]), 1) == [b"{}"]


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH Content-Length\r\n\r\n", CHUNKED + b"x\r\n", None])
async def test_a_failure_contains_no_secret(answer: bytes | None) -> None:
    async with transport(Server([answer]), {"Authorization": "Bearer canary"}) as client:
        with pytest.raises(RetryableCallError) as failed:
            await client.get("/x", 1.0)
    assert "canary" not in "".join(traceback.format_exception(failed.value))


async def test_a_kept_connection_that_ended_meanwhile_costs_no_try() -> None:
    assert await bodies(Server([OK, None], [OK]), 2) == [b"{}", b"{}"]


@pytest.mark.parametrize("path", ["get", "post"])
async def test_a_new_connection_that_closes_is_a_failure_and_the_request_is_not_repeated(path: str) -> None:
    server = Server([None], [OK])
    async with transport(server) as client:
        with pytest.raises(RetryableCallError, match="DisconnectedError"):
            await (client.get("/x", 5.0) if path == "get" else client.post(Post("/x", b"{}", {}), 5.0))
    assert len(server.requests) == 1


async def test_a_post_to_a_kept_connection_that_ended_meanwhile_is_repeated() -> None:
    server = Server([OK, None], [OK])
    async with transport(server) as client:
        for _ in range(2):
            assert (await client.post(Post("/x", b'{"a": 1}', {"Idempotency-Key": "one"}), 5.0)).body == b"{}"
    assert len(server.requests) == 3
    assert len(set(server.requests)) == 1
    assert server.requests[0].endswith(b'\r\n\r\n{"a": 1}')


async def test_chunks_are_put_together() -> None:
    chunked = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{"\r\n4\r\na":1\r\n1\r\n}\r\n0\r\n\r\n'
    assert await bodies(Server([chunked, OK]), 2) == [b'{"a":1}', b"{}"]


async def test_a_body_may_be_longer_than_headers() -> None:
    chunk = b" " * 50_000
    answer = CHUNKED + (b"%x\r\n%b\r\n" % (len(chunk), chunk)) * 20 + b"0\r\n\r\n"
    async with transport(Server([answer]), largest=1_000_000) as client:
        assert len((await client.get("/x", 5.0)).body) == 1_000_000


async def test_a_response_without_a_length_closes_with_its_connection() -> None:
    assert await bodies(Server([b"HTTP/1.1 200 OK\r\n\r\n[1]"], [OK]), 2) == [b"[1]", b"{}"]


async def test_an_announcement_is_no_response() -> None:
    assert await bodies(Server([b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK]), 1) == [b"{}"]


@pytest.mark.parametrize(
    ("packed", "encoding"), [(gzip.compress(b'{"a":1}', mtime=0), b"gzip"), (zlib.compress(b'{"a":1}'), b"Deflate")]
)
async def test_a_compressed_body_is_read(packed: bytes, encoding: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (encoding, len(packed))
    assert await bodies(Server([head + packed]), 1) == [b'{"a":1}']


async def test_trailers_are_no_headers() -> None:
    head = CHUNKED.replace(END, b"\r\nRetry-After: 1" + END)
    async with transport(Server([head + b"2\r\n{}\r\n0\r\nRetry-After: 9" + END])) as client:
        assert (await client.get("/x", 5.0)).retry_after == "1"


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + b" " * 101, PermanentCallError, "larger than 100 bytes"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Encoding: gzip\r\n\r\n{}",
            RetryableCallError,
            "BadResponse",
        ),
        (
            OK.replace(END, b"\r\nContent-Encoding: br" + END),
            PermanentCallError,
            "encoded as 'br'",
        ),
        (ZIPPED % len(BOMB) + BOMB, PermanentCallError, "larger than 100 bytes"),
        (ZIPPED % (len(SMALL) - 1) + SMALL[:-1], RetryableCallError, "BadResponse"),
        (ZIPPED % (2 * len(SMALL)) + 2 * SMALL, RetryableCallError, "BadResponse"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", RetryableCallError, "BadResponse"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: " + b"x" * 70_000, RetryableCallError, "BadResponse"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + b"X: x\r\n" * 13_000, RetryableCallError, "BadResponse"),
        (CHUNKED + b"2\r\n{}\r\n0\r\nX: " + b"x" * 700_000, RetryableCallError, "BadResponse"),
        (UPGRADED, RetryableCallError, "BadResponse"),
        (b"SSH-2.0-OpenSSH Content-Length\r\n\r\n", RetryableCallError, "BadResponse"),
    ],
)
async def test_an_invalid_response_is_an_error(answer: bytes, error: type[Exception], why: str) -> None:
    async with transport(Server([answer], [OK])) as client:
        with pytest.raises(error, match=why):
            await client.get("/x", 5.0)
        assert (await client.get("/x", 5.0)).body == b"{}"


async def test_a_call_that_is_given_up_takes_its_connection_with_it() -> None:
    server = Server([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"], [OK])
    async with transport(server) as client:
        with pytest.raises(RetryableCallError, match=r"no answer within 0.2 s"):
            await client.get("/x", 0.2)
        await asyncio.wait_for(server.left.wait(), DEADLINE_S)
        assert (await client.get("/x", 5.0)).body == b"{}"
