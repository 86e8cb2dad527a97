"""What a client of the WebSocket is told, as models: for the OpenAPI document. Tests hold the service to them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.query.http.response_models import KeyAnswer, ProblemAnswer

Ids = Annotated[tuple[str, ...], Field(min_length=1, description="The subscriptions that it is for")]


class WatchMessage(BaseModel):
    """A message, as JSON. Clients pass over fields and types that they do not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ValueMessage(WatchMessage):
    """A key has this value. A subscription by key that says this tag in `after` is not told it again."""

    type: Literal["state"]
    ids: Ids
    tag: str
    answer: KeyAnswer


class KeyGoneMessage(WatchMessage):
    """A key has no value: never one, none any more, or none with what the subscription asks for."""

    type: Literal["never_seen", "removed", "expired", "left"]
    ids: Ids
    state: str
    key: str


class CurrentMessage(WatchMessage):
    """The present values of these partitions have been sent."""

    type: Literal["current"]
    id: str
    partitions: tuple[int, ...]


class RecordsLag(WatchMessage):
    """How many records are not read yet."""

    records: int


class StateProgress(WatchMessage):
    """How far a state's topic is read; with positions, all before these offsets has been sent."""

    lag: RecordsLag
    positions: dict[str, int] | None = None


class MarkMessage(WatchMessage):
    """How far the client is behind: keys that wait, changes that others stand for, and how old the oldest is."""

    type: Literal["mark"]
    waiting: int
    conflated: int
    oldest_ms: int
    states: dict[str, StateProgress]


class ResetMessage(WatchMessage):
    """The client was too slow, and what waited was dropped: subscribe again to read anew."""

    type: Literal["reset"]
    ids: tuple[str, ...]
    conflated: int


class AcknowledgedMessage(WatchMessage):
    """The answer to a subscribe or unsubscribe."""

    type: Literal["subscribed", "unsubscribed"]
    id: str


class ErrorMessage(WatchMessage):
    """What is wrong with a subscription, or a message whose id cannot be read. `no_token`: the connection ends."""

    type: Literal["error"]
    id: str | None
    problem: ProblemAnswer


MESSAGES = (ValueMessage, KeyGoneMessage, CurrentMessage, MarkMessage, ResetMessage, AcknowledgedMessage, ErrorMessage)
