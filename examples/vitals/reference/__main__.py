"""Serves the heart rate of a waveform: `python -m examples.vitals.reference`. SIGINT and SIGTERM end it."""

from aiohttp import web

from examples.serving import ServerSettings, healthz, serve
from examples.vitals.rates import heart_rate


async def _heart_rate(request: web.Request) -> web.Response:
    try:
        rate, samples = float(request.query["rate"]), [int(sample) for sample in request.query["samples"].split("_")]
    except (KeyError, ValueError):
        return web.json_response({"error": "write ?rate=100&samples=512_518"}, status=400)
    bpm = heart_rate(samples, rate)
    if bpm is None:
        return web.json_response({"error": "no heart rate"}, status=404)
    return web.json_response({"bpm": bpm})


def application(_: ServerSettings) -> web.Application:
    """The server as an aiohttp application."""
    app = web.Application()
    app.router.add_get("/heart_rate", _heart_rate)
    app.router.add_get("/healthz", healthz)
    return app


if __name__ == "__main__":
    serve(ServerSettings, application)
