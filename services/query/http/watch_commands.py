"""Commands on the WebSocket: of clients, and of other instances that relay subscriptions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from contracts.api.reads import SPAN
from services.query.http.validation import milliseconds_at, seconds_of
from services.query.lookup.version_reference import TAG
from services.query.push.filter import SubscriptionFilter, WindowChoice

PATHS_MAX = 8
Name = Annotated[str, Field(min_length=1, max_length=64)]
Key = Annotated[str, Field(max_length=4096)]
Path = Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$", max_length=256)]


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

    def filter(self) -> SubscriptionFilter:
        """The filter of the subscription."""
        window: WindowChoice
        window = milliseconds_at(self.window) if isinstance(self.window, datetime) else self.window
        where = tuple(sorted(self.where.items()))
        silent_for = None if self.silent_for is None else seconds_of(self.silent_for)
        return SubscriptionFilter(self.state, self.key, self.prefix or "", where, window, silent_for)


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
