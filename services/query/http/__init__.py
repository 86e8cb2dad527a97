"""The HTTP interface of an instance: server, routes, the fast path of reads, and the transports of push.

`HttpServer` is the interface: it serves objects that implement `Routes`. `state_api` makes those of the states.
This package forwards requests to the owner of a key and turns problems into responses. Decisions are in `lookup`.
"""

from services.query.http.assembly import state_api
from services.query.http.server import HttpServer, Routes

__all__ = ["HttpServer", "Routes", "state_api"]
