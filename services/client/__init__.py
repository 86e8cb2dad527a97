"""Asks the query service from Python: `async with Client("http://127.0.0.1:8080") as states`."""

from services.client.answers import Answer, Expired, Found, NeverSeen, Source
from services.client.client import Client
from services.client.errors import (
    AccessDenied,
    AddressWrong,
    CatchingUp,
    ModelRefused,
    NoAnswer,
    PermanentError,
    QueryError,
    Refused,
    RetryableError,
    SteppedBack,
    Unreadable,
)
from services.client.pages import Page, StateInfo

__all__ = [
    "AccessDenied",
    "AddressWrong",
    "Answer",
    "CatchingUp",
    "Client",
    "Expired",
    "Found",
    "ModelRefused",
    "NeverSeen",
    "NoAnswer",
    "Page",
    "PermanentError",
    "QueryError",
    "Refused",
    "RetryableError",
    "Source",
    "StateInfo",
    "SteppedBack",
    "Unreadable",
]
