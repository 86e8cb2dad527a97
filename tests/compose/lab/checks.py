"""What all checks of a stack have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.compose.lab.court import Court
    from tests.compose.lab.stack import Stack
    from tests.compose.lab.steps import Steps


class Checks:
    """Checks of a stack. Each raises StackError, or CommandFailedError, when it does not hold."""

    def __init__(self, stack: Stack, steps: Steps, court: Court) -> None:
        self._stack, self._steps, self._court = stack, steps, court

    def command(self, command: str) -> str:
        """Run a documented command."""
        return self._stack.compose(*command.split())
