"""Asks the query service from Python: `async with Client("http://127.0.0.1:8090") as states`."""

from services.client.answers import Answer, Expired, Found, NeverSeen, Source
from services.client.client import Client
from services.client.errors import (
    AccessDenied,
    AddressWrong,
    CatchingUp,
    ModelRefused,
    NoAnswer,
    NotYet,
    PermanentError,
    QueryError,
    Refused,
    RetryableError,
    SteppedBack,
    Unreadable,
)
from services.client.pages import Page, StateInfo
from services.client.subscriptions import Interest
from services.client.updates import Left, Mark, Removed, Update

__all__ = [
    "AccessDenied",
    "AddressWrong",
    "Answer",
    "CatchingUp",
    "Client",
    "Expired",
    "Found",
    "Interest",
    "Left",
    "Mark",
    "ModelRefused",
    "NeverSeen",
    "NoAnswer",
    "NotYet",
    "Page",
    "PermanentError",
    "QueryError",
    "Refused",
    "Removed",
    "RetryableError",
    "Source",
    "StateInfo",
    "SteppedBack",
    "Unreadable",
    "Update",
]
