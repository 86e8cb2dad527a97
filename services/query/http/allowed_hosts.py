"""Under which names an instance without tokens is asked: its own, so that no page elsewhere reads it by another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from services.query.settings import is_loopback

if TYPE_CHECKING:
    from aiohttp import web

    from services.query.settings import QuerySettings

HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]*)?")


class AllowedHosts:
    """Judges the headers Host and Origin. Where tokens are needed, a name opens nothing, and any will do."""

    def __init__(self, settings: QuerySettings) -> None:
        self._any = settings.tokens is not None
        own = (settings.url,) if settings.url else ()
        self._named = {_name(one.partition("://")[2].rstrip("/")) for one in (*own, *settings.origins)}

    def serves(self, host: str | None, origin: str | None) -> bool:
        """Whether to answer who asks so. Every browser sends a Host, and with what may do harm an Origin."""
        return self._any or ((host is None or self._is_ours(host)) and (origin is None or self._is_page(origin)))

    def answers(self, request: web.Request) -> bool:
        """The same of a request, which may say each several times."""
        hosts = request.headers.getall("Host", [None])
        origins = request.headers.getall("Origin", [None])
        return all(self.serves(host, origin) for host in hosts for origin in origins)

    def _is_page(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self._is_ours(host)

    def _is_ours(self, host: str) -> bool:
        name = _name(host)
        return name is not None and (is_loopback(name) or name in self._named)


def _name(host: str) -> str | None:
    """Without the port; None for what is no host."""
    matched = HOST.fullmatch(host)
    return matched and matched[1].strip("[]").lower()
