"""The server: one route for each API, and a middleware that counts the calls and spoils some."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import orjson
from aiohttp import web
from aiohttp.typedefs import Middleware
from pydantic import BaseModel, ValidationError

from examples.flights.reference import answers
from examples.flights.reference.faults import TokenBucket, fails
from examples.flights.reference.ledger import Ledger
from examples.flights.reference.settings import ReferenceSettings
from examples.serving import healthz

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Q = TypeVar("Q", bound=answers.Query)

LEDGER = web.AppKey("ledger", Ledger)
UNCOUNTED = ("/healthz", "/calls")


def application(settings: ReferenceSettings, clock: Callable[[], float] = time.monotonic) -> web.Application:
    """The server as an aiohttp application."""
    app = web.Application(middlewares=[_spoil(settings, TokenBucket(settings.rate_limit, clock))])
    app[LEDGER] = Ledger()
    app.router.add_get("/airlines/{carrier}", _looked_up(lambda r: answers.airline(r.match_info["carrier"])))
    app.router.add_get("/airports/{faa}", _looked_up(lambda r: answers.airport(r.match_info["faa"])))
    app.router.add_get("/aircraft/{tailnum}", _looked_up(lambda r: answers.aircraft(r.match_info["tailnum"])))
    app.router.add_get("/weather/{faa}", _looked_up(_weather))
    app.router.add_get("/route", _computed(answers.RouteQuery, answers.route))
    app.router.add_get("/performance", _computed(answers.PerformanceQuery, answers.performance))
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/calls", _calls)
    app.router.add_delete("/calls", _forget_calls)
    return app


def _spoil(settings: ReferenceSettings, limit: TokenBucket) -> Middleware:
    """Count each call; refuse those beyond the rate and fail some; delay all."""

    @web.middleware
    async def spoil(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in UNCOUNTED:
            return await handler(request)
        nth = request.app[LEDGER].ask(request.path_qs)
        if settings.latency_ms:
            await asyncio.sleep(settings.latency_ms / 1000)
        if wait := limit.take():
            response: web.StreamResponse = _error(429, "over the rate limit")
            response.headers["Retry-After"] = str(math.ceil(wait))
        elif fails(request.path_qs, nth, settings.failure_rate, settings.seed):
            response = _error(503, "fails now and then, as configured")
        else:
            response = await _handled(request, handler)
        request.app[LEDGER].answer(request.path_qs, response.status)
        return response

    return spoil


async def _handled(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _error(error.status, error.reason)


def _looked_up(answer: Callable[[web.Request], BaseModel | None]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        model = answer(request)
        return _error(404, "unknown") if model is None else _json(model)

    return handle


def _weather(request: web.Request) -> BaseModel | None:
    return answers.weather(request.match_info["faa"], request.query.get("hour", ""))


def _computed(model: type[Q], answer: Callable[[Q], BaseModel]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            query = model.model_validate(dict(request.query))
        except ValidationError as error:
            return _error(400, "; ".join(f"{wrong['loc'][0]}: {wrong['msg']}" for wrong in error.errors()))
        return _json(answer(query))

    return handle


async def _calls(request: web.Request) -> web.StreamResponse:
    report = orjson.dumps(request.app[LEDGER].report(), option=orjson.OPT_NON_STR_KEYS)
    return web.Response(body=report, content_type="application/json")


async def _forget_calls(request: web.Request) -> web.StreamResponse:
    request.app[LEDGER].clear()
    return web.Response(status=204)


def _json(model: BaseModel) -> web.Response:
    return web.Response(body=orjson.dumps(model.model_dump(exclude_none=True)), content_type="application/json")


def _error(status: int, reason: str) -> web.Response:
    return web.Response(status=status, body=orjson.dumps({"error": reason}), content_type="application/json")
