"""Principals and their scopes: bearer tokens from a file that is read again when it changes."""

from __future__ import annotations

import asyncio
import hmac
import logging
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from contracts.errors import problem_of
from services.query.errors import TokensUnreadableError
from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

log = logging.getLogger(__name__)

ALL_STATES = "*"
RELOAD_EVERY_S = 1.0
Secret = Annotated[SecretStr, Field(min_length=16)]


@dataclass(frozen=True)
class Principal:
    """The sender of a request. It may read `states` (`*` for all), and of those the keys with one of the prefixes.

    It may write such keys of the tables in `writes`.
    """

    name: str
    states: tuple[str, ...] = (ALL_STATES,)
    keys: tuple[str, ...] = ("",)
    token: bytes = field(default=b"", repr=False, compare=False)
    """The digest of its token; empty if it needs none."""
    writes: tuple[str, ...] = ()

    @property
    def is_unbounded(self) -> bool:
        """Whether it may read everything."""
        return ALL_STATES in self.states and "" in self.keys

    def reads(self, state: str) -> bool:
        """Whether it may read some keys of the state."""
        return ALL_STATES in self.states or state in self.states

    def reads_key(self, state: str, key: str) -> bool:
        """Whether it may read the key, or every key with this prefix."""
        return self.reads(state) and key.startswith(self.keys)

    def reads_all(self, state: str) -> bool:
        """Whether it may read every key of the state."""
        return self.reads(state) and "" in self.keys

    def check_all(self) -> None:
        """Raises ProblemError (403) unless it may read everything: totals over all keys need that."""
        if not self.is_unbounded:
            detail = f"These figures are totals over all keys, and the token {self.name!r} does not read all of them"
            raise ProblemError(Problem("not_yours", detail))

    def check(self, state: str, key: str | None = None) -> None:
        """Raises ProblemError (403) if the state, or the key or prefix of keys, is beyond the scope."""
        if key is None:
            if not self.reads(state):
                raise ProblemError(Problem("not_yours", f"{self.name} may not read {state!r}"))
        elif not self.reads_key(state, key):
            raise ProblemError(Problem("not_yours", f"{self.name} may not read {key!r} of {state!r}"))

    def check_order(self, state: str) -> None:
        """Raises ProblemError (403) unless it may read every key of the state: an order by numbers goes through all."""
        if not self.reads_all(state):
            detail = (
                f"order_by and silent_for go through all keys of {state!r}, and {self.name} does not read all of them:"
                " leave them out, and order the keys with your prefix yourself"
            )
            raise ProblemError(Problem("not_yours", detail))

    def writes_table(self, table: str) -> bool:
        """Whether it may write some keys of the table."""
        return ALL_STATES in self.writes or table in self.writes

    def check_write(self, table: str, key: str) -> None:
        """Raises ProblemError (403) if it may not write the key of the table."""
        if not self.writes_table(table) or not key.startswith(self.keys):
            raise ProblemError(Problem("not_yours", f"{self.name} may not write {key!r} of {table!r}"))


ANONYMOUS = Principal("anonymous", writes=(ALL_STATES,))
"""The sender of a request where no token is needed."""
PEER = Principal("another instance")
"""Another instance, which forwards a request after it has checked the scope of its sender."""


class Authenticator:
    """Finds the principal of a token. While the file is unreadable, the tokens that were read last remain valid.

    `peer` is the token that instances send each other.
    """

    def __init__(self, path: Path | None, peer: SecretStr | None = None) -> None:
        self._path = path
        self._peer = [] if peer is None else [(_digest(peer), PEER)]
        self._principals: list[tuple[bytes, Principal]] = []
        self._stamp: tuple[int, int] | None = None
        self.refresh()

    def refresh(self) -> bool:
        """Read the file if it has changed; returns whether it has. Raises TokensUnreadableError."""
        if self._path is None:
            return False
        try:
            found = self._path.stat()
            stamp = found.st_mtime_ns, found.st_ino
            if stamp == self._stamp:
                return False
            self._principals = _read_principals(self._path)
        except OSError as error:
            raise TokensUnreadableError(self._path, error.strerror or str(error)) from error
        self._stamp = stamp
        return True

    def authenticate(self, authorization: str | None) -> Principal | None:
        """The principal of an Authorization header; None for an unknown token. Takes the same time for every token."""
        if self._path is None:
            return ANONYMOUS
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        digest, found = sha256(token.encode("utf-8", "surrogateescape")).digest(), None
        for known, principal in (*self._principals, *self._peer):
            if hmac.compare_digest(known, digest):
                found = principal
        return found

    def reauthenticate(self, principal: Principal) -> Principal | None:
        """The present principal of the same token; None if the token was revoked."""
        if not principal.token:
            return principal
        return next((one for known, one in self._principals if hmac.compare_digest(known, principal.token)), None)


async def watch_tokens(authenticator: Authenticator, *on_change: Callable[[], None]) -> None:
    """Reload the file when it changes, until cancelled."""
    while True:
        await asyncio.sleep(RELOAD_EVERY_S)
        reload_tokens(authenticator, *on_change)


def reload_tokens(authenticator: Authenticator, *on_change: Callable[[], None]) -> None:
    """Read the file if it has changed, then call each of `on_change`. Logs an unreadable file."""
    try:
        if authenticator.refresh():
            for callback in on_change:
                callback()
            log.info("tokens", extra={"facts": {"read": True}})
    except TokensUnreadableError as error:
        log.warning("tokens", extra={"facts": {"read": False, "reason": str(error)}})


def _digest(secret: SecretStr) -> bytes:
    return sha256(secret.get_secret_value().encode()).digest()


class _Token(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(min_length=1)
    token: Secret | None = None
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    states: tuple[str, ...] = (ALL_STATES,)
    keys: tuple[str, ...] = ("",)
    writes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_one(self) -> _Token:
        if (self.token is None) == (self.sha256 is None):
            raise ValueError("write either token or sha256")
        return self

    def digest(self) -> bytes:
        if self.token is None:
            return bytes.fromhex(self.sha256 or "")
        return _digest(self.token)


class _Tokens(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    tokens: tuple[_Token, ...]


def _read_principals(path: Path) -> list[tuple[bytes, Principal]]:
    try:
        read = _Tokens.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise TokensUnreadableError(path, "; ".join(problem_of(one, "it") for one in error.errors())) from None
    return [
        (token.digest(), Principal(token.name, token.states, token.keys, token.digest(), token.writes))
        for token in read.tokens
    ]
