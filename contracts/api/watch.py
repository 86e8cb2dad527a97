"""Watches: one key by server-sent events, and many by the messages of a WebSocket."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from contracts.api.endpoint import REQUEST_PROBLEMS, Endpoint, ProblemAnswer
from contracts.api.reads import CurrentAnswer, KeyAnswer, WindowAnswer

Ids = Annotated[tuple[str, ...], Field(min_length=1, description="The subscriptions that receive it")]


class WatchMessage(BaseModel):
    """A message, as JSON. Clients ignore members and types that they do not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ValueMessage(WatchMessage):
    """A key has this value. A subscription to the key with this tag in `after` does not receive it again."""

    type: Literal["state"]
    ids: Ids
    tag: str
    answer: WindowAnswer | KeyAnswer


class KeyGoneMessage(WatchMessage):
    """A key has no value: it was never seen, is gone, or no longer matches the filter."""

    type: Literal["never_seen", "removed", "expired", "left"]
    ids: Ids
    state: str
    key: str
    window_start: AwareDatetime | None = Field(
        default=None, description="Only in a windowed state: the window, or null for the key as a whole"
    )


class CurrentMessage(WatchMessage):
    """The present values of these partitions were sent."""

    type: Literal["current"]
    id: str
    partitions: tuple[int, ...]


class RecordsLag(WatchMessage):
    """Records that are not read yet."""

    records: int


class StateProgress(WatchMessage):
    """How far the topic of a state is read; with positions, everything before these offsets was sent."""

    lag: RecordsLag
    positions: dict[str, int] | None = None


class MarkMessage(WatchMessage):
    """How far the client is behind: queued keys, changes replaced by later ones, and the age of the oldest."""

    type: Literal["mark"]
    waiting: int
    conflated: int
    oldest_ms: int
    states: dict[str, StateProgress]


class ResetMessage(WatchMessage):
    """The client was too slow, and queued changes were dropped: subscribe again to receive the present values."""

    type: Literal["reset"]
    ids: tuple[str, ...]
    conflated: int


class AcknowledgedMessage(WatchMessage):
    """The response to a subscribe or unsubscribe."""

    type: Literal["subscribed", "unsubscribed"]
    id: str


class ErrorMessage(WatchMessage):
    """Why a subscription, or a command with an unreadable id, was rejected. After `no_token` the connection ends."""

    type: Literal["error"]
    id: str | None
    problem: ProblemAnswer


MESSAGES = (ValueMessage, KeyGoneMessage, CurrentMessage, MarkMessage, ResetMessage, AcknowledgedMessage, ErrorMessage)
PROBLEMS = ("bad_request", "not_yours", *REQUEST_PROBLEMS)
WATCH_KEY = Endpoint(
    "/v1/states/{name}/{key}/watch", "The value of a key, and its changes", CurrentAnswer, (*PROBLEMS, "unknown_state")
)
WATCH_MANY = Endpoint("/v1/watch", "Changes of keys, prefixes and filters", WatchMessage, PROBLEMS)
