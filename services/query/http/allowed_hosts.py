"""Host names under which an instance without tokens answers, so that no page of another site can read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from services.query.settings import is_loopback

if TYPE_CHECKING:
    from aiohttp import web

    from services.query.settings import QuerySettings

HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]*)?")


class AllowedHosts:
    """Checks the headers Host and Origin. Where tokens are required, every host is allowed."""

    def __init__(self, settings: QuerySettings) -> None:
        self._any = settings.tokens is not None
        own = (settings.url,) if settings.url else ()
        self._names = {_name(one.partition("://")[2].rstrip("/")) for one in (*own, *settings.origins)}

    def allow(self, host: str | None, origin: str | None) -> bool:
        """Whether to answer. Browsers always send Host, and Origin with every request that may do harm."""
        return self._any or ((host is None or self._is_own(host)) and (origin is None or self._is_own_page(origin)))

    def allow_request(self, request: web.Request) -> bool:
        """Whether to answer the request, which may repeat these headers."""
        hosts = request.headers.getall("Host", [None])
        origins = request.headers.getall("Origin", [None])
        return all(self.allow(host, origin) for host in hosts for origin in origins)

    def _is_own_page(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self._is_own(host)

    def _is_own(self, host: str) -> bool:
        name = _name(host)
        return name is not None and (is_loopback(name) or name in self._names)


def _name(host: str) -> str | None:
    """The host without its port; None if it is not valid."""
    matched = HOST.fullmatch(host)
    return matched and matched[1].strip("[]").lower()
