"""The view as one plain line, for where there is no terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.live.figures import Quantiles
    from services.live.view import View


def line(view: View) -> str:
    """All figures in one line."""
    if view.trouble:
        return view.trouble
    shown = {
        "events/s": f"{view.events:.1f}",
        "snapshots/s": f"{view.snapshots:.1f}",
        "calls/s": rates(view.calls),
        "feedback/s": rates(view.feedback),
        "job lag": f"{view.job_lag}",
        "worker lag": "?" if view.worker_lag is None else f"{view.worker_lag}",
        "event → snapshot": latency(view.to_snapshot),
        "event → enriched": latency(view.to_enriched),
        "dead letters": f"{sum(view.dead_letters.values())}",
    }
    return "   ".join(f"{name} {value}" for name, value in shown.items())


def rates(by_name: Mapping[str, float] | None) -> str:
    """Rates by name with their sum, leaving out those that are 0."""
    if by_name is None:
        return "?"
    parts = ", ".join(f"{name} {value:.1f}" for name, value in by_name.items() if value)
    total = f"{sum(by_name.values()):.1f}"
    return f"{total} ({parts})" if parts else total


def latency(quantiles: Quantiles | None) -> str:
    """p50 and p95."""
    return "none yet" if quantiles is None else f"{duration(quantiles.p50)} p50, {duration(quantiles.p95)} p95"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min"
