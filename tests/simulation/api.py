"""The APIs that the workers of a simulation call: their answers, their faults, and a log of all calls."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import orjson

from contracts import RetryableCallError
from services.enrichment.calls.response import Response
from services.enrichment.calls.webhook import IDEMPOTENCY_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from services.enrichment.calls.transport import Post

SLOW_S = 5.0
LIST = "/owners"
"""The path of calls for several keys."""
REFUSED = 400
GARBAGE = (b"<html>", b'{"name": NaN}', b"[]", b'{"name": 5, "street": 5, "price": "much"}', b"")
LIST_GARBAGE = (b"<html>", b"[NaN]", b"5", b"")
"""That of a call for several keys, of which an empty list is an absence."""
FAULTS = ("slow", "hang", "down", "reset", "error", "unavailable", "throttled", "refused", "garbage")


class Call(NamedTuple):
    """A call of one key as the API logs it: when, by which process, the target, and whether it had its true answer."""

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
    match parts.path:
        case "/streets":
            return {"street": f"street-of-{query['name']}"}
        case "/fits":
            return _estimate(int(query["load"]), 0 if query["value"] == "none" else int(query["value"]))
        case "/offers":
            return {"price": 3 * int(query["value"])}
    return {"price": 2 * int(query["load"]) + len(query["name"])}


def _estimate(load: int, value: int) -> dict[str, Any] | None:
    """Return an estimate of a load that is closer than the one before; some have none."""
    closer = value + (load - value) * 3 // 4
    return None if closer % 13 == 12 else {"value": closer}


def _parts_of(target: str) -> list[str]:
    """Return the targets that a call stands for: one for each key of a call for several owners."""
    plates = parse_qs(urlsplit(target).query).get("plate", [])
    return [f"/owners/{plate}" for plate in plates] if _is_list(target) else [target]


def _response_to(target: str) -> Response:
    """Return the response to a call. A list of keys of which one is absent is refused."""
    answers = {part.removeprefix("/owners/"): true_answer(part) for part in _parts_of(target)}
    present = [{"plate": plate} | answer for plate, answer in answers.items() if answer is not None]
    if len(present) < len(answers):
        return Response(404 if len(answers) == 1 else REFUSED, b"")
    return Response(200, orjson.dumps(present if _is_list(target) else true_answer(target)))


def _is_list(target: str) -> bool:
    return urlsplit(target).path == LIST


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
        now = asyncio.get_running_loop().time()
        response = _response_to(target)
        is_answered = not fault and response.status != REFUSED
        self.calls += [Call(now, process, part, is_answered) for part in _parts_of(target)]
        await self._work(fault, within)
        return self._response(fault, response, LIST_GARBAGE if _is_list(target) else GARBAGE)

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

    def _response(self, fault: str, response: Response, garbage: Sequence[bytes] = GARBAGE) -> Response:
        match fault:
            case "down" | "reset":
                raise RetryableCallError("the connection failed (ClientConnectionError)")
            case "error" | "unavailable":
                return Response(500 if fault == "error" else 503, b"")
            case "throttled":
                return Response(429, b"", self._random.choice(["3", "30", None]))
            case "refused":
                return Response(REFUSED, b"")
            case "garbage":
                return Response(200, self._random.choice(garbage))
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
