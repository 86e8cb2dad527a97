"""The test of a rule of alerts before it is saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contracts.api.admin import AlertChanges

LISTED = 20
"""How many keys of each kind are listed."""


@dataclass(frozen=True, slots=True)
class RuleTestResult:
    """The changes in the alerts of one state when the rule is saved.

    `evaluated` states have keys that the rule applies to. After the rule is saved, `open` of them have an open alert
    of it, and `pending` a pending one, which opens after `hold`. `opening` keys have no open alert now, and `closing`
    keys have none then: all are counted, and the first are listed. The condition raised for `failed` states; `failure`
    has the first reason.
    """

    alerts: str
    evaluated: int
    open: int
    pending: int
    opening_count: int
    opening: Sequence[str]
    closing_count: int
    closing: Sequence[str]
    failed: int
    failure: str | None

    @classmethod
    def of(cls, changes: AlertChanges) -> RuleTestResult:
        """Return the result in a page of a response: of the keys that it has read."""
        return cls(
            changes.alerts,
            changes.evaluated,
            changes.open,
            changes.pending,
            changes.opening.count,
            changes.opening.keys,
            changes.closing.count,
            changes.closing.keys,
            changes.failed,
            changes.failure,
        )

    def joined(self, rest: RuleTestResult) -> RuleTestResult:
        """The result of the keys of both."""
        return RuleTestResult(
            self.alerts,
            self.evaluated + rest.evaluated,
            self.open + rest.open,
            self.pending + rest.pending,
            self.opening_count + rest.opening_count,
            (*self.opening, *rest.opening)[:LISTED],
            self.closing_count + rest.closing_count,
            (*self.closing, *rest.closing)[:LISTED],
            self.failed + rest.failed,
            self.failure or rest.failure,
        )
