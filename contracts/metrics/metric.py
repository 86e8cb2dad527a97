"""The declaration of a metric: its name, its meaning and its labels."""

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, eq=False)  # compared by identity, so that its hash costs nothing where figures are counted
class Metric:
    """A figure of one part. A counter only grows while the process runs; `labels` are the names of its labels.

    `buckets` are the upper bounds of a histogram, in its unit, which is the last word of its name.
    """

    part: Literal["worker", "job", "derive", "sink", "query"]
    kind: Kind
    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def family(self) -> str:
        """The metric's name in Prometheus, where samples of a counter have `_total` after it."""
        return f"stateloop_{self.part}_{self.name}"

    @property
    def exported(self) -> str:
        """The name in a query of Prometheus."""
        return f"{self.family}_total" if self.kind == "counter" else self.family


def listed(module: dict[str, Any]) -> tuple[Metric, ...]:
    """Return the metrics that a module declares, in their order."""
    return tuple(value for value in module.values() if isinstance(value, Metric))
