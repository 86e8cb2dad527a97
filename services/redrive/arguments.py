"""The arguments of `stateloop redrive`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contracts.records.record import Reason
from services.redrive.dead_letters import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

RATE = 100.0


def arguments(given: Sequence[str]) -> Namespace:
    """Parse `command` (list or back), the selection, `rate` and `dry_run`."""
    parser = ArgumentParser(
        prog="stateloop redrive",
        description="List dead letters, or send them into the loop again. STATELOOP_APPLICATION names the application.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="count them by reason, enrichment and origin")
    back = commands.add_parser("back", help="send refused records again, repeat failed requests and deliveries")
    for one in (listing, back):
        _add_selection(one)
    back.add_argument("--dry-run", action="store_true", help="print what would be done, and do nothing")
    back.add_argument("--rate", type=_rate, default=RATE, metavar="N", help=f"records a second (default {RATE:g})")
    return parser.parse_args(given)


def selection(given: Namespace) -> Selection:
    """Return the selection of the arguments."""
    return Selection(frozenset(given.reason), frozenset(given.enrichment), given.since, given.until)


def _add_selection(parser: ArgumentParser) -> None:
    reasons = [reason.value for reason in Reason]
    parser.add_argument("--reason", action="append", default=[], choices=reasons, help="may be given more than once")
    parser.add_argument(
        "--enrichment",
        action="append",
        default=[],
        help="only failures of it, or of these alerts; may be given more than once",
    )
    parser.add_argument("--application", metavar="NAME", help="only those of one application of a suite (default: all)")
    parser.add_argument("--since", type=_time, help="written at or after this time, as 2026-01-31T12:00:00Z")
    parser.add_argument("--until", type=_time, help="written before it")


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError("write it as 2026-01-31T12:00:00Z") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise ArgumentTypeError("write a number of records a second, above 0")
    return rate
