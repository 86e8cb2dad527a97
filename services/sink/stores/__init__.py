"""The stores that come with the sink, by the scheme of their URLs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from contracts.errors import DeclarationError
from contracts.model.reference import named_object
from services.sink.errors import ClientMissingError, UnknownStoreError

if TYPE_CHECKING:
    from contracts.sinks import StoreFactory


class KnownStore(NamedTuple):
    """A store: the name of its module, its class, and its client library with the extra that installs it, if any."""

    name: str
    class_name: str
    client: str | None = None
    extra: str = ""


REDIS = KnownStore("redis", "RedisStore", "redis", "redis")
POSTGRESQL = KnownStore("postgresql", "PostgresqlStore", "psycopg", "postgres")
STORES = {"redis": REDIS, "rediss": REDIS, "unix": REDIS, "postgresql": POSTGRESQL, "postgres": POSTGRESQL}
"""The stores by the scheme of their URLs."""


def scheme(url: str) -> str:
    """Return the scheme of a URL; nothing else of it, because the rest may contain a password."""
    return url.partition("://")[0] if "://" in url else ""


def store_name(url: str, own: str | None) -> str:
    """Return the name of the store, for consumer groups."""
    return own.rpartition(":")[2] if own else STORES[scheme(url)].name


async def require_answer(url: str) -> None:
    """Return when the store of a URL answers, and accepts the login; nothing is written.

    Raises StoreUnavailableError, StoreMismatchError.
    """
    await import_module(f"services.sink.stores.{STORES[scheme(url)].name}").require_answer(url)


def store_factory(url: str, own: str | None) -> StoreFactory:
    """Return what makes the stores. Raises UnknownStoreError, ClientMissingError, DeclarationError."""
    if own is not None:
        own_factory = named_object(own)
        if not callable(own_factory):
            raise DeclarationError(repr(own), "is not a StoreFactory", "Write package.module:name")
        return own_factory
    known = STORES.get(scheme(url))
    if known is None:
        raise UnknownStoreError(scheme(url), tuple(f"{known_scheme}://" for known_scheme in STORES))
    if known.client is not None:
        try:
            import_module(known.client)
        except ImportError as error:
            raise ClientMissingError(known.client, known.extra) from error
    factory: StoreFactory = getattr(import_module(f"services.sink.stores.{known.name}"), known.class_name)
    return factory
