"""The functions of an application: plain ones, which the library calls with arguments by position."""

import inspect
from typing import Any

from contracts.errors import DeclarationError


def check_function(where: str, function: Any, *arguments: str) -> None:
    """Check that a function is plain, and takes these arguments. Raises DeclarationError.

    A function without a signature, as some built-in ones, takes any arguments.
    """
    check_plain(where, function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        taken = " and ".join(arguments)
        raise DeclarationError(where, f"is called with {taken}: {error}", f"Write a function of {taken}") from error


def check_plain(where: str, function: Any) -> None:
    """Check that a function gives no coroutine and no asynchronous generator. Raises DeclarationError."""
    called = (function, getattr(function, "__call__", None))  # noqa: B004  # of an object, its class has the function
    if any(inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in called):
        raise DeclarationError(where, "is async", "Write a plain function, which calls nothing: nothing awaits it")
