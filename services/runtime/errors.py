"""Errors that any part can end with."""

from collections.abc import Mapping

from contracts.errors import PermanentError


class ForeignTopicsError(PermanentError):
    """Output topics of this application belong to another one. `owners` has each topic's application and role."""

    def __init__(self, application: str, owners: Mapping[str, tuple[str, str]]) -> None:
        listed = ", ".join(f"{topic!r} ({role} of {owner!r})" for topic, (owner, role) in sorted(owners.items()))
        super().__init__(
            f"the application {application!r} cannot write to topics of another application: {listed}. Give it topics "
            "of its own with Topics(prefix=…), or, when the other application is stopped for good, run "
            "`stateloop topics` once with STATELOOP_TAKE_OVER=true"
        )
        self.owners = dict(owners)
