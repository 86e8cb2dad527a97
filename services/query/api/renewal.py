"""The file of tokens, read again when it has changed."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from services.query.errors import TokensUnreadableError

if TYPE_CHECKING:
    from services.query.api.access import Access
    from services.query.api.hot import Hot

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0


async def renewed(access: Access, hot: Hot) -> None:
    """Look at the file until cancelled. While what it says cannot be read, the tokens from before count."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        renew(access, hot)


def renew(access: Access, hot: Hot) -> None:
    """Take what the file says now."""
    try:
        if access.refresh():
            hot.forget()
            log.info("tokens", extra={"facts": {"read": True}})
    except TokensUnreadableError as error:
        log.warning("tokens", extra={"facts": {"read": False, "reason": str(error)}})
