"""How a dead letter gets back into the loop, if it can: the decision, as pure functions."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from contracts.records.record import Reason
from contracts.wire import REDRIVEN, Feedback

if TYPE_CHECKING:
    from datetime import datetime

    from contracts import Application
    from services.redrive.letters import Found


class Way(StrEnum):
    """What becomes of a letter; the first two bring something back."""

    PRODUCED = "produced again"
    """The record that was refused goes to its topic once more, whole."""
    ASKED = "asked again"
    """The slot is opened that the failure had closed, so that a worker asks once more."""
    GONE = "gone from their topic"
    """The record is not kept any more."""
    AGAIN = "refused more than once, and brought back with the first of their letters"
    OVER = "of lives that are over"
    """The job would refuse an answer as late."""
    CLOSED = "with nothing to bring back"
    """The record was empty, or no record of ours is the cause."""
    UNREADABLE = "unreadable"


def way(application: Application, found: Found, now: datetime) -> Way:
    """What is to be done with a letter, as far as it says itself."""
    letter = found.letter
    if letter is None:
        return Way.UNREADABLE
    if letter.reason == Reason.ENRICHMENT_FAILED:
        return _way_of_failed(application, found, now)
    if letter.topic in (application.topics.events, application.topics.feedback) and letter.reason != Reason.EMPTY:
        return Way.PRODUCED
    return Way.CLOSED


def opening(found: Found, now: datetime) -> Feedback:
    """The feedback that opens a slot: a failure of the same version that answers no inputs.

    It is later than the failure that it opens, and so takes its place; against any other answer it loses: a result to
    the same version, and whatever was computed from a later one. So it never undoes anything, however often it comes.
    What was spent of the device's budget stays spent.
    """
    letter, key = found.letter, found.key
    if letter is None or key is None or letter.first_seen is None or not letter.enrichment or not letter.version:
        raise ValueError("this letter does not say what to ask again")
    return Feedback(
        device_id=key.decode(),
        first_seen=letter.first_seen,
        enrichment=letter.enrichment,
        epoch=letter.epoch or 0,
        version=letter.version,
        status="failure",
        ts=now,
        fingerprint=REDRIVEN,
        reason="to be asked again",
        spent=letter.spent,
    )


def _way_of_failed(application: Application, found: Found, now: datetime) -> Way:
    letter = found.letter
    if letter is None or not found.key or letter.first_seen is None or not letter.version:
        return Way.CLOSED
    if letter.enrichment not in application.by_name:
        return Way.CLOSED
    if not application.topics.replay and now - letter.first_seen > application.kept_for:
        return Way.OVER
    return Way.ASKED
