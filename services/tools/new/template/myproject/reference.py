"""A stub of the API, for this machine: `python -m myproject.reference`.

In production, STATELOOP_APIS has the address of the real one.
"""

import json
import os
import sys

from aiohttp import web

SITES = {
    "harbour": {"name": "Harbour", "limit": 8.0},
    "north": {"name": "North hall", "limit": 6.0},
    "south": {"name": "South hall", "limit": 6.5},
}


async def site(request: web.Request) -> web.Response:
    """Answer with a site; 404 is an absence."""
    found = SITES.get(request.match_info["site"])
    return web.json_response(found) if found else web.json_response({}, status=404)


async def healthz(_: web.Request) -> web.Response:
    """Answer the health check of `make up` and of compose."""
    return web.json_response({"status": "ok"})


def server() -> web.Application:
    """Return the API."""
    application = web.Application()
    application.add_routes([web.get("/sites/{site}", site), web.get("/healthz", healthz)])
    return application


def main() -> None:
    """Serve until Ctrl-C or SIGTERM."""
    host = os.environ.get("STATELOOP_REFERENCE_HOST", "127.0.0.1")
    port = int(os.environ.get("STATELOOP_REFERENCE_PORT", "8081"))
    sys.stderr.write(f"stateloop reference: {json.dumps({'host': host, 'port': port})}\n")  # `make up` waits for it
    web.run_app(server(), host=host, port=port, print=None, access_log=None)


if __name__ == "__main__":
    main()
