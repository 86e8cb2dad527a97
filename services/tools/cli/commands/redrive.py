"""`stateloop redrive list|back`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from services.tools.cli.commands.parameters import FLAT, parsed

if TYPE_CHECKING:
    from services.tools.redrive.dead_letters import DeadLetterFilter

RATE = 100.0
REASONS = (
    "empty",
    "oversized",
    "not_utf8",
    "malformed",
    "invalid_field",
    "wrong_key",
    "incredible_time",
    "late",
    "processor_failed",
    "undecodable",
    "large_snapshot",
    "undecodable_snapshot",
    "enrichment_failed",
    "delivery_failed",
    "invalid_row",
    "not_derived",
    "not_stored",
)
"""The reasons of dead letters. Their enumeration is not imported: help would take a third of a second more."""

redrive = App(
    name="redrive",
    help="List dead letters, or send them into the loop again. STATELOOP_APPLICATION names the application.",
)


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("write it as 2026-01-31T12:00:00Z") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise ValueError("write a number of records a second, above 0")
    return rate


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """The dead letters that a command takes."""

    reason: Annotated[list[str] | None, Parameter(choices=REASONS, help="may be given more than once")] = None
    enrichment: Annotated[
        list[str] | None,
        Parameter(help="only failures of it, or of these alerts; may be given more than once"),
    ] = None
    application: Annotated[
        str | None, Parameter(metavar="NAME", help="only those of one application of a suite (default: all)")
    ] = None
    since: Annotated[datetime | None, parsed(_time, help="written at or after this time, as 2026-01-31T12:00:00Z")] = (
        None
    )
    until: Annotated[datetime | None, parsed(_time, help="written before it")] = None


@redrive.command(name="list")
def listing(*, options: Annotated[SelectionOptions, FLAT] = SelectionOptions()) -> None:
    """Count them by reason, enrichment and origin."""
    from services.tools.redrive.commands import print_counts

    print_counts(_selection(options), options.application)


@redrive.command
def back(
    *,
    options: Annotated[SelectionOptions, FLAT] = SelectionOptions(),
    dry_run: Annotated[bool, Parameter(help="print what would be done, and do nothing")] = False,
    rate: Annotated[float, parsed(_rate, metavar="N", help=f"records a second (default {RATE:g})")] = RATE,
) -> None:
    """Send refused records again, repeat failed requests and deliveries."""
    from services.tools.redrive.commands import send_back

    send_back(_selection(options), options.application, rate=rate, dry_run=dry_run)


def _selection(options: SelectionOptions) -> "DeadLetterFilter":
    from services.tools.redrive.dead_letters import DeadLetterFilter

    reasons, enrichments = frozenset(options.reason or ()), frozenset(options.enrichment or ())
    return DeadLetterFilter(reasons, enrichments, options.since, options.until)
