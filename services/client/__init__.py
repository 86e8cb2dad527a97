"""The Python client of the query service: `async with Client("http://127.0.0.1:8090") as states`."""

from contracts.errors import PermanentError, RetryableError
from services.client.answers import Answer, Expired, Found, Left, NeverSeen, NoWindow, Removed, Source, Update
from services.client.client import Client
from services.client.coverage import Interval, KeyCoverage
from services.client.errors import (
    AccessDeniedError,
    CatchingUpError,
    ClientError,
    InvalidAddressError,
    InvalidResponseError,
    ModelMismatchError,
    NoAnswerError,
    NotArrivedError,
    RejectedError,
    StaleReadError,
)
from services.client.pages import Page, StateInfo
from services.client.rule_test import RuleTestResult
from services.client.watch import Mark, WatchFilter

__all__ = [
    "AccessDeniedError",
    "Answer",
    "CatchingUpError",
    "Client",
    "ClientError",
    "Expired",
    "Found",
    "Interval",
    "InvalidAddressError",
    "InvalidResponseError",
    "KeyCoverage",
    "Left",
    "Mark",
    "ModelMismatchError",
    "NeverSeen",
    "NoAnswerError",
    "NoWindow",
    "NotArrivedError",
    "Page",
    "PermanentError",
    "RejectedError",
    "Removed",
    "RetryableError",
    "RuleTestResult",
    "Source",
    "StaleReadError",
    "StateInfo",
    "Update",
    "WatchFilter",
]
