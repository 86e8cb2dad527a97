"""What ends the view, with the way out in its message. What passes by itself is shown instead."""

from contracts.errors import StateloopError


class WrongOptions(StateloopError):
    """The Kafka client takes no such options."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the Kafka client says {problem!r}: correct STATELOOP_KAFKA_OPTIONS")
        self.problem = problem
