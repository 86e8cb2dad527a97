"""Who may ask, and for what: bearer tokens with scopes, from a file."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from services.query.errors import TokensUnreadableError
from services.query.lookup.problem import Problem, ProblemError

if TYPE_CHECKING:
    from pathlib import Path

ALL_STATES = "*"
Secret = Annotated[SecretStr, Field(min_length=16)]


@dataclass(frozen=True)
class Principal:
    """Who asks. `states` are the names that it may read, `*` all; of those, keys that begin with one of `keys`."""

    name: str
    states: tuple[str, ...] = (ALL_STATES,)
    keys: tuple[str, ...] = ("",)
    token: bytes = field(default=b"", repr=False, compare=False)
    """The digest of the token by which it is known; of who needs none, nothing."""

    @property
    def unbounded(self) -> bool:
        """Whether it may read everything."""
        return ALL_STATES in self.states and "" in self.keys

    def reads(self, state: str) -> bool:
        """Whether it may ask for the state at all."""
        return ALL_STATES in self.states or state in self.states

    def reads_key(self, state: str, key: str) -> bool:
        """Whether it may ask for the key, or for all that begin with it."""
        return self.reads(state) and key.startswith(self.keys)

    def reads_all(self, state: str) -> bool:
        """Whether it may ask for every key of the state."""
        return self.reads(state) and "" in self.keys

    def check_all(self) -> None:
        """Refuse figures that are totals over all keys to a token that may not read them all. Raises ProblemError."""
        if not self.unbounded:
            detail = f"These figures are totals over all keys, and the token {self.name!r} does not read all of them"
            raise ProblemError(Problem("not_yours", detail))

    def check(self, state: str, key: str | None = None) -> None:
        """Refuse what is beyond the scope. `key` may be a prefix of keys. Raises ProblemError."""
        if key is None:
            if not self.reads(state):
                raise ProblemError(Problem("not_yours", f"{self.name} may not read {state!r}"))
        elif not self.reads_key(state, key):
            raise ProblemError(Problem("not_yours", f"{self.name} may not read {key!r} of {state!r}"))


ANONYMOUS = Principal("anybody")
"""Who asks where no token is needed."""
PEER = Principal("another instance")
"""Who hands a question on, for somebody whose scope it has looked at."""

PRINCIPAL = web.RequestKey("holder", Principal)


def principal(request: web.Request) -> Principal:
    """Who asks, of a request below /v1/: its `check` refuses what is beyond the scope."""
    return request[PRINCIPAL]


class Authenticator:
    """Finds the holder of a token. `refresh` reads the file anew; while that is wrong, the old tokens count.

    `peer` is what the instances show each other.
    """

    def __init__(self, path: Path | None, peer: SecretStr | None = None) -> None:
        self._path = path
        self._peer = [] if peer is None else [(_digest(peer), PEER)]
        self._holders: list[tuple[bytes, Principal]] = []
        self._stamp: tuple[int, int] | None = None
        self.refresh()

    def refresh(self) -> bool:
        """Read the file if it has changed, and say so. Raises TokensUnreadableError."""
        if self._path is None:
            return False
        try:
            found = self._path.stat()
            stamp = found.st_mtime_ns, found.st_ino
            if stamp == self._stamp:
                return False
            self._holders = _holders(self._path)
        except OSError as error:
            raise TokensUnreadableError(self._path, error.strerror or str(error)) from error
        self._stamp = stamp
        return True

    def authenticate(self, authorization: str | None) -> Principal | None:
        """Whose the header's token is; None: nobody's. Takes as long whichever token it is."""
        if self._path is None:
            return ANONYMOUS
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        digest, found = sha256(token.encode("utf-8", "surrogateescape")).digest(), None
        for known, holder in (*self._holders, *self._peer):
            if hmac.compare_digest(known, digest):
                found = holder
        return found

    def again(self, holder: Principal) -> Principal | None:
        """What the same token may ask for now; None: nothing, it was taken away."""
        if not holder.token:
            return holder
        return next((found for known, found in self._holders if hmac.compare_digest(known, holder.token)), None)


def _digest(secret: SecretStr) -> bytes:
    return sha256(secret.get_secret_value().encode()).digest()


class _Token(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(min_length=1)
    token: Secret | None = None
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    states: tuple[str, ...] = (ALL_STATES,)
    keys: tuple[str, ...] = ("",)

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


def _holders(path: Path) -> list[tuple[bytes, Principal]]:
    try:
        read = _Tokens.model_validate_json(path.read_bytes())
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors())
        raise TokensUnreadableError(path, told) from None
    return [(one.digest(), Principal(one.name, one.states, one.keys, one.digest())) for one in read.tokens]
