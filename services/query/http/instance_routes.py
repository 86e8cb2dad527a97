"""GET /v1/instances: the instances, the partitions of each, and the owner of each partition."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from contracts.api.admin import INSTANCES
from services.query.cluster import Role
from services.query.http.responses import json_response
from services.query.http.routes import route
from services.query.store import StatePartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from aiohttp import web

    from contracts.model.named_state import NamedState
    from contracts.wire.announcement import AnnouncedPart, Announcement
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.authentication import Principal


class InstanceRoutes:
    """The route. `announced` returns the last announcements of the instances, first that of this one."""

    def __init__(self, announced: Callable[[], Sequence[Announcement]], states: Mapping[str, NamedState]) -> None:
        self._announced = announced
        self._states = states

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(INSTANCES, self.get)]

    async def get(self, request: HttpRequest) -> HttpResponse:
        """All instances, this one first, and the number of partitions of each state, which locates a key."""
        sender, announced = request.sender, self._announced()
        owners = owners_of(announced)
        instances = [instance_facts(one, owners, sender) for one in announced]
        partitions = {name: state.partitions for name, state in self._states.items() if sender.reads(name)}
        return json_response({"instances": instances, "partitions": partitions})


def owners_of(announced: Iterable[Announcement]) -> dict[StatePartition, str]:
    """The store of the owner of each partition: of two claims that of the later term, as all instances see it."""
    claims: dict[StatePartition, tuple[int, str]] = {}
    for one in announced:
        for name, state in one.states.items():
            for part in state.parts:
                if part.held:
                    place = StatePartition(name, part.partition)
                    claims[place] = max(claims.get(place, (0, "")), (part.term, one.store))
    return {place: store for place, (_, store) in claims.items()}


def instance_facts(
    announcement: Announcement, owners: Mapping[StatePartition, str], sender: Principal
) -> dict[str, Any]:
    """One instance, with the states in the scope of the sender. `owns` has the partitions that it owns."""
    owns: dict[str, list[int]] = defaultdict(list)
    states = {name: state for name, state in announcement.states.items() if sender.reads(name)}
    for name, state in states.items():
        numbers = [part.partition for part in state.parts]
        owns[name] += [number for number in numbers if owners.get(StatePartition(name, number)) == announcement.store]
    return {
        "instance": announcement.instance,
        "url": announcement.url,
        "owns": owns,
        "states": {
            name: {
                "watermark": state.watermark,
                "partitions": [_part(part, counts=sender.reads_all(name)) for part in state.parts],
            }
            for name, state in states.items()
        },
    }


def _part(part: AnnouncedPart, *, counts: bool) -> dict[str, Any]:
    """One partition. Its position counts the records of all keys: without `counts` it is null."""
    position = part.position if counts else None
    return {"partition": part.partition, "role": _role(part), "position": position, "lag": part.lag}


def _role(part: AnnouncedPart) -> str:
    """A replica that does not answer is a standby too: it answers when the owner is down."""
    if part.held and part.assigned:
        return Role.OWNER
    return Role.CATCHING_UP if part.assigned or not part.ready else Role.STANDBY
