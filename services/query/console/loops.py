"""The loops of a suite: one for each application."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contracts.api.loop import ApplicationHealth
from services.query.console.dead_letters import DeadLetterLog
from services.query.console.metrics_history import MetricsHistory
from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from contracts import Application, Suite
    from services.query.console.observation import Observation
    from services.query.lookup.authentication import Principal


class ApplicationLoop(NamedTuple):
    """The loop of one application: its metrics history and its dead letters."""

    application: Application
    history: MetricsHistory
    dead_letters: DeadLetterLog


class Loops:
    """The loops of a suite's applications by name, in the order of the suite."""

    def __init__(self, suite: Suite, every_s: float) -> None:
        self._by_name = {
            application.name: ApplicationLoop(
                application, MetricsHistory(application, every_s), DeadLetterLog(application.topics.dead_letters)
            )
            for application in suite.applications
        }

    def get(self, name: str | None, principal: Principal) -> ApplicationLoop:
        """Return the loop of this application, by default of the first in the scope. Raises ProblemError (403, 404).

        The scope is checked first, so that an application beyond it is answered like one that does not exist.
        """
        known = [one for one in self._by_name if principal.reads(one)]
        if name is None and not known:
            raise ProblemError(Problem("not_yours", f"{principal.name} may not read the state of any application"))
        wanted = known[0] if name is None else name
        principal.check(wanted)
        found = self._by_name.get(wanted)
        if found is None:
            detail = f"The applications are: {', '.join(known) or 'none'}"
            raise ProblemError(Problem("unknown_application", detail, {"application": wanted}))
        return found

    def all(self) -> list[ApplicationLoop]:
        """Return all loops."""
        return list(self._by_name.values())

    def record(self, observation: Observation) -> None:
        """Add an observation to the history of each loop."""
        for one in self._by_name.values():
            one.history.record(observation)

    def health(self) -> tuple[ApplicationHealth, ...]:
        """Return whether the loop of each application is healthy."""
        return tuple(
            ApplicationHealth(name=name, healthy=report.healthy)
            for name, one in self._by_name.items()
            if (report := one.history.health) is not None
        )
