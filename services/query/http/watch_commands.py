"""What a client says on the WebSocket, and what it is told besides notices."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from services.query.lookup.version_reference import TAG
from services.query.push.filter import Filter

PATHS_MOST = 8
Name = Annotated[str, Field(min_length=1, max_length=64)]
Key = Annotated[str, Field(max_length=4096)]
Path = Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$", max_length=256)]


class ClientMessage(BaseModel):
    """A message, as JSON. Unknown fields are refused, for a misspelt one would be a wish that nobody hears."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Subscribe(ClientMessage):
    """Tell me of one key; or of all with a prefix, whose fields have these values. An id used before is replaced.

    `current`: first what is there now. `after`: the client has this tag of the key, and is not told it again.
    """

    type: Literal["subscribe"]
    id: Name
    state: Name
    key: Key | None = None
    prefix: Key | None = None
    where: dict[Path, Key] = Field(default_factory=dict, max_length=PATHS_MOST)
    current: bool = True
    after: str | None = Field(default=None, pattern=TAG)

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.key is None) == (self.prefix is None and not self.where):
            raise ValueError("write either key, or prefix (which may be empty) or where")
        if self.key is None and self.after is not None:
            raise ValueError("after goes with key")
        return self

    def interest(self) -> Filter:
        """What is asked for."""
        return Filter(self.state, self.key, self.prefix or "", tuple(sorted(self.where.items())))


class Relay(Subscribe):
    """A subscription of another instance, for a client of its own.

    It is told what is here: of these partitions what came after the offsets, or all where that is null.
    """

    partitions: dict[int, int | None]


class Resume(ClientMessage):
    """Another instance goes on here with these partitions, after the offsets."""

    type: Literal["resume"]
    id: Name
    partitions: dict[int, int | None]


class Unsubscribe(ClientMessage):
    """Tell me of this no more."""

    type: Literal["unsubscribe"]
    id: Name


ClientCommand = Annotated[Subscribe | Unsubscribe, Field(discriminator="type")]
CLIENT_COMMAND: TypeAdapter[Subscribe | Unsubscribe] = TypeAdapter(ClientCommand)
"""Reads a client's message."""
PEER_COMMAND: TypeAdapter[Relay | Resume | Unsubscribe] = TypeAdapter(
    Annotated[Relay | Resume | Unsubscribe, Field(discriminator="type")]
)
"""Reads a message of another instance."""
