"""The APIs that the workers of a simulation call: their answers, their faults, and a log of all calls."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlsplit

import orjson

from contracts import RetryableCallError
from services.enrichment.calls.response import Response
from services.enrichment.calls.webhook import IDEMPOTENCY_KEY

if TYPE_CHECKING:
    from random import Random
    from typing import Any

    from services.enrichment.calls.transport import Post

SLOW_S = 5.0
GARBAGE = (b"<html>", b'{"name": NaN}', b"[]", b'{"name": 5, "street": 5, "price": "much"}', b"")
FAULTS = ("slow", "hang", "down", "reset", "error", "unavailable", "throttled", "refused", "garbage")


class Call(NamedTuple):
    """A call as the API logs it: when, by which process, the target, and whether it had its true answer."""

    at: float
    process: str
    target: str
    is_answered: bool


def true_answer(target: str) -> dict[str, Any] | None:
    """Return the answer to a call, which depends on nothing but the call; None for an absence."""
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if parts.path.startswith("/owners/"):
        plate = parts.path.removeprefix("/owners/")
        return None if zlib.crc32(plate.encode()) % 5 == 0 else {"name": f"owner-of-{plate}"}
    if parts.path == "/streets":
        return {"street": f"street-of-{query['name']}"}
    return {"price": 2 * int(query["load"]) + len(query["name"])}


class Delivery(NamedTuple):
    """A POST to a webhook as its API logs it: by its idempotency key, the body, and whether it was accepted."""

    key: str
    content: bytes
    is_accepted: bool


class ApiStub:
    """All APIs. `faults` has the present fault of an API, and the share of its calls that have it."""

    def __init__(self, random: Random, slowest_s: float) -> None:
        self.calls: list[Call] = []
        self.deliveries: list[Delivery] = []
        self.faults: dict[str, tuple[str, float]] = {}
        self._random = random
        self._slowest_s = slowest_s

    async def respond(self, api: str, process: str, target: str, within: float) -> Response:
        """Return the response to a call. Raises RetryableCallError as a transport does."""
        fault = self._fault(api)
        self.calls.append(Call(asyncio.get_running_loop().time(), process, target, is_answered=not fault))
        await self._work(fault, within)
        answer = true_answer(target)
        return self._response(fault, Response(404, b"") if answer is None else Response(200, orjson.dumps(answer)))

    async def accept(self, api: str, post: Post, within: float) -> Response:
        """Return the response to a delivery. Raises RetryableCallError as a transport does."""
        fault = self._fault(api)
        is_accepted = fault in {"", "garbage"}
        self.deliveries.append(Delivery(post.headers[IDEMPOTENCY_KEY], post.content, is_accepted))
        await self._work(fault, within)
        return self._response(fault, Response(204, b""))

    def _fault(self, api: str) -> str:
        fault, share = self.faults.get(api, ("", 0.0))
        return fault if self._random.random() < share else ""

    async def _work(self, fault: str, within: float) -> None:
        pause_s = self._random.uniform(0.01, self._slowest_s)
        if fault in {"hang", "slow"}:
            pause_s = SLOW_S if fault == "slow" else float("inf")
        if pause_s >= within:
            await asyncio.sleep(within)
            raise RetryableCallError(f"no answer within {within:g} s")
        await asyncio.sleep(pause_s)

    def _response(self, fault: str, response: Response) -> Response:
        match fault:
            case "down" | "reset":
                raise RetryableCallError("the connection failed (ClientConnectionError)")
            case "error" | "unavailable":
                return Response(500 if fault == "error" else 503, b"")
            case "throttled":
                return Response(429, b"", self._random.choice(["3", "30", None]))
            case "refused":
                return Response(400, b"")
            case "garbage":
                return Response(200, self._random.choice(GARBAGE))
        return response


class StubTransport:
    """The connection of one process to one API. Implements Transport."""

    def __init__(self, stub: ApiStub, api: str, process: str) -> None:
        self._stub = stub
        self._api = api
        self._process = process

    async def get(self, target: str, within: float) -> Response:
        """See `Transport.get`."""
        return await self._stub.respond(self._api, self._process, target, within)

    async def post(self, post: Post, within: float) -> Response:
        """See `Transport.post`."""
        return await self._stub.accept(self._api, post, within)
