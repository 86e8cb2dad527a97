"""GET /v1/instances: who is there, what each has, and who answers for what."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from aiohttp import web

from services.query.api.reply import reply
from services.query.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contracts.announcement import AnnouncedPart, Announcement
    from contracts.named import NamedState
    from services.query.cluster.cluster import Cluster


class Listing:
    """The route. What others have is as they announced it last, at most about a second ago."""

    def __init__(self, cluster: Cluster, states: Mapping[str, NamedState]) -> None:
        self._cluster = cluster
        self._states = states

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [web.get("/v1/instances", self.instances)]

    async def instances(self, _: web.Request) -> web.Response:
        """All of them, the one that was asked first; and the partitions of each state, which say where a key is."""
        told = [listed(one) for one in self._cluster.announced()]
        partitions = {name: state.partitions for name, state in self._states.items()}
        return reply({"instances": told, "partitions": partitions}).response()


def listed(announcement: Announcement) -> dict[str, Any]:
    """One instance. `owns` has the partitions that it answers for."""
    owns: dict[str, list[int]] = defaultdict(list)
    for name, state in announcement.states.items():
        owns[name] += [part.partition for part in state.parts if part.held]
    return {
        "instance": announcement.instance,
        "url": announcement.url,
        "owns": owns,
        "states": {
            name: {"watermark": state.watermark, "partitions": [_part(part) for part in state.parts]}
            for name, state in announcement.states.items()
        },
    }


def _part(part: AnnouncedPart) -> dict[str, Any]:
    return {"partition": part.partition, "role": _role(part), "position": part.position, "lag": part.lag}


def _role(part: AnnouncedPart) -> str:
    """A copy that does not answer is a standby too: it would, were the owner away."""
    if part.held and part.assigned:
        return Role.OWNER
    return Role.CATCHING_UP if part.assigned or not part.ready else Role.STANDBY
