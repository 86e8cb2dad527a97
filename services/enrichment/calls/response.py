"""The response of an API, or the reason of its absence."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import ClientError

from contracts import PermanentCallError, RetryableCallError
from services.enrichment.calls.addresses import AddressRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})
GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
"""zlib detects the format by its header."""


class DisconnectedError(ClientError):
    """The connection closed before the response was complete."""


class BadResponseError(ClientError):
    """The received bytes are not one response."""


class ForbiddenAddressError(RetryableCallError):
    """The address is forbidden. Names and settings change, so a later attempt may be allowed."""


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response. `drop` closes its connection, with the request in flight there."""

    status: int
    body: bytes
    retry_after: str | None = None
    location: str | None = None
    drop: Callable[[], None] = field(default=_nothing, repr=False, compare=False)


def decoded(body: bytes, encoding: str, largest: int) -> bytes:
    """Decode a body. Raises PermanentCallError for one that is too large or of another encoding."""
    if encoding not in ENCODINGS:
        raise PermanentCallError(f"the response is encoded as {encoding!r}, which the request does not accept")
    inflater = zlib.decompressobj(GZIP_OR_ZLIB)
    try:
        plain = inflater.decompress(body, largest + 1)
    except zlib.error as error:
        raise BadResponseError(str(error)) from error
    check_size(len(plain), largest)
    if not inflater.eof or inflater.unused_data:
        raise BadResponseError("the compressed body is incomplete, or bytes follow it")
    return plain


def check_size(size: int, largest: int) -> None:
    """Raise PermanentCallError for a body of more bytes than the policy allows."""
    if size > largest:
        raise PermanentCallError(f"the response is larger than {largest} bytes")


def error_of(error: ClientError | OSError, within: float) -> RetryableCallError:
    """Return the error of a call without a complete response."""
    if isinstance(error, TimeoutError):
        return RetryableCallError(f"no answer within {within:g} s")
    if isinstance(error, AddressRefusedError):
        return ForbiddenAddressError(str(error))
    return RetryableCallError(f"the connection failed ({type(error).__name__})")
