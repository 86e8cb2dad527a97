"""Alerts: conditions on states, by rules that change while the application runs."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import translate
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from contracts.errors import DeclarationError
from contracts.model.function import check_function
from contracts.model.named_state import NO_TIME, QueryOptions
from contracts.model.table import Table
from contracts.model.webhook import Webhook
from contracts.types.declaration import Declaration
from contracts.wire import Snapshot

Condition = Callable[[Snapshot, Any], bool]
PATTERN = re.compile(r"[*?\[]")


class AlertRule(BaseModel):
    """A row of a table of rules. A subclass adds the parameters of the condition, such as a threshold.

    `keys` selects the keys of the state: one key, or a pattern (`*` any text, `?` one character, `[abc]` one of these).
    An alert opens when the condition has been true for `hold`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: Annotated[str, Field(min_length=1)] = "*"
    hold: Annotated[timedelta, Field(ge=NO_TIME)] = NO_TIME

    @cached_property
    def is_pattern(self) -> bool:
        """Return whether the rule may apply to several keys."""
        return PATTERN.search(self.keys) is not None

    @cached_property
    def prefix(self) -> str:
        """The prefix of all keys that the rule applies to."""
        match = PATTERN.search(self.keys)
        return self.keys[: match.start()] if match else self.keys

    @cached_property
    def applies_to(self) -> Callable[[str], object]:
        """The function that returns whether the rule applies to a key. It is called for each rule and snapshot."""
        return re.compile(translate(self.keys)).match if self.is_pattern else self.keys.__eq__


@dataclass(frozen=True)
class Alerts(Declaration):
    """Alerts of each key and window, by the rules of a table. They can be queried as a named state.

    `opens` and `closes` are pure functions of a snapshot and a rule. An alert opens when `opens` is true and `closes`
    is not, and closes when `closes` is true; without `closes`, when `opens` is no longer true. It also closes when its
    rule is changed or removed, and when its window expires. A changed rule is evaluated against the present states at
    once. `webhook` is called when an alert opens, and when it closes.
    """

    name: str
    rules: Table
    opens: Condition
    closes: Condition | None = None
    query: QueryOptions = QueryOptions(indexes=("status",))  # noqa: RUF009  # it is frozen
    webhook: Webhook | None = None

    def __post_init__(self) -> None:
        if not issubclass(self.rules.model, AlertRule):
            problem = f"{self.rules.model.__name__} is no AlertRule"
            write = f"Write class {self.rules.model.__name__}(AlertRule): …"
            raise DeclarationError(f"Alerts({self.name!r})", problem, write)
        check_function(f"Alerts({self.name!r}, opens=…)", self.opens, "snapshot", "rule")
        if self.closes is not None:
            check_function(f"Alerts({self.name!r}, closes=…)", self.closes, "snapshot", "rule")

    def is_true(self, snapshot: Snapshot, rule: Any) -> bool:
        """Return whether an alert that is not open opens."""
        return bool(self.opens(snapshot, rule)) and not (self.closes and self.closes(snapshot, rule))

    def is_over(self, snapshot: Snapshot, rule: Any) -> bool:
        """Return whether an open alert closes."""
        return bool(self.closes(snapshot, rule)) if self.closes else not self.opens(snapshot, rule)


def webhook_apis(alerts: Iterable[Alerts]) -> set[str]:
    """Return the APIs that are called as webhooks of these alerts."""
    return {one.webhook.api for one in alerts if one.webhook}
