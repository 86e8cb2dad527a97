"""Watches: one key by server-sent events, and many by the commands and messages of a WebSocket."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from contracts.api.endpoint import Endpoint, header, query_parameter
from contracts.api.problems import REQUEST_PROBLEMS, ProblemAnswer
from contracts.api.reads import SPAN, CurrentAnswer, KeyAnswer, WindowAnswer

TAG = r"^(?:(-?[0-9]{1,19})\.(?:(-?[0-9]{1,19})\.)?)?(-?[0-9]{1,19})(\.closed)?$"
"""Tags of releases before 0.2.0 lack the epoch. Streams that began with one resume here."""
PATHS_MAX = 8
Name = Annotated[str, Field(min_length=1, max_length=64)]
Key = Annotated[str, Field(max_length=4096)]
Path = Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$", max_length=256)]
Ids = Annotated[tuple[str, ...], Field(min_length=1, description="The subscriptions that receive it")]


class WatchCommand(BaseModel):
    """A command, as JSON. Unknown members are rejected, so that typing errors are noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Subscribe(WatchCommand):
    """Subscribe to one key, or to all with a prefix whose fields have these values. Replaces a subscription of this id.

    `window`: of a windowed state, the newest window of each key, all windows, or the one that contains a time.
    `silent_for`: only while the last record of the key is older than this, as 30s, 5m, 2h or 1d.
    `current`: with the present values first. `after`: the client has the version of this tag, and does not need it.
    """

    type: Literal["subscribe"]
    id: Name
    state: Name
    key: Key | None = None
    prefix: Key | None = None
    where: dict[Path, Key] = Field(default_factory=dict, max_length=PATHS_MAX)
    window: Literal["newest", "all"] | AwareDatetime = "newest"
    silent_for: str | None = Field(default=None, pattern=SPAN)
    current: bool = True
    after: str | None = Field(default=None, pattern=TAG)

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.key is None) == (self.prefix is None and not self.where):
            raise ValueError("write either key, or prefix (which may be empty) or where")
        if self.key is None and self.after is not None:
            raise ValueError("after goes with key")
        return self


class Relay(Subscribe):
    """Subscribe for a client of another instance.

    It receives what this instance serves: of these partitions everything after the offsets, or all where that is null.
    """

    partitions: dict[int, int | None]


class Resume(WatchCommand):
    """Continue a relayed subscription with these partitions, after the offsets."""

    type: Literal["resume"]
    id: Name
    partitions: dict[int, int | None]


class Unsubscribe(WatchCommand):
    """End a subscription."""

    type: Literal["unsubscribe"]
    id: Name


CLIENT_COMMAND: TypeAdapter[Subscribe | Unsubscribe] = TypeAdapter(
    Annotated[Subscribe | Unsubscribe, Field(discriminator="type")]
)
"""Parses a command of a client."""
PEER_COMMAND: TypeAdapter[Relay | Resume | Unsubscribe] = TypeAdapter(
    Annotated[Relay | Resume | Unsubscribe, Field(discriminator="type")]
)
"""Parses a command of another instance."""


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
    """Changes were lost: subscribe again to receive the present values.

    The client was too slow, and the changes that waited for it were dropped. Or a removal may be lost: a partition
    moved to another instance, or the connection to its instance broke, while the client was behind.
    """

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


COMMANDS = (Subscribe, Unsubscribe)
MESSAGES = (ValueMessage, KeyGoneMessage, CurrentMessage, MarkMessage, ResetMessage, AcknowledgedMessage, ErrorMessage)
CURRENT = query_parameter(
    "current", "Whether the present value is sent first", type="string", enum=["true", "false"], default="true"
)
WINDOW = query_parameter(
    "window",
    "Of a windowed state: the newest window of the key, all windows, or the one that contains this time",
    anyOf=[{"enum": ["newest", "all"]}, {"type": "string", "format": "date-time"}],
    default="newest",
)
SILENT = query_parameter(
    "silent_for",
    "`state` only while the last record of the key is older than this, as 30s, 5m, 2h or 1d, and `left` when it is not "
    "any more",
    type="string",
    pattern=SPAN,
)
LAST = header(
    "Last-Event-ID",
    "The id of the last event that the client has: it receives what came after it",
    type="string",
    pattern=TAG,
)
PROTOCOL = header("Sec-WebSocket-Protocol", "stateloop.v1; a page adds its token, as stateloop.bearer.<base64url>")
PROBLEMS = ("bad_request", "not_yours", *REQUEST_PROBLEMS)
WATCH_KEY = Endpoint(
    "/v1/states/{name}/{key}/watch",
    "The value of a key, and its changes",
    CurrentAnswer,
    (*PROBLEMS, "unknown_state"),
    parameters=(CURRENT, WINDOW, SILENT, LAST),
    content_type="text/event-stream",
)
WATCH_MANY = Endpoint(
    "/v1/watch", "Changes of keys, prefixes and filters", WatchMessage, PROBLEMS, parameters=(PROTOCOL,)
)
