"""`stateloop live`."""

from typing import Annotated

from cyclopts import Parameter


def live(
    *,
    application: Annotated[
        str | None, Parameter(metavar="NAME", help="an application of the suite (default: the first)")
    ] = None,
) -> None:
    """Show the loop of an application. Ctrl-C or SIGTERM stops it."""
    import asyncio

    from contracts.settings import read
    from services.client.settings import ClientSettings
    from services.tools.live.show import LiveSettings, show

    client = read(ClientSettings)
    asyncio.run(show(read(LiveSettings), client.url.split(","), client.secret(), application))
