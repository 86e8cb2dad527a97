"""The file of tokens, read again when it has changed."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from services.query.errors import TokensUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.lookup.authentication import Authenticator

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0


async def reload_forever(access: Authenticator, *told: Callable[[], None]) -> None:
    """Look at the file until cancelled. While what it says cannot be read, the tokens from before count."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        reload(access, *told)


def reload(access: Authenticator, *told: Callable[[], None]) -> None:
    """Take what the file says now, and tell who holds what an earlier one said."""
    try:
        if access.refresh():
            for one in told:
                one()
            log.info("tokens", extra={"facts": {"read": True}})
    except TokensUnreadableError as error:
        log.warning("tokens", extra={"facts": {"read": False, "reason": str(error)}})
