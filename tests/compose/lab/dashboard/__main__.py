"""Asks Prometheus for every figure of the dashboard: `python -m tests.compose.lab.dashboard --prometheus HOST:PORT`.

It ends when each expression gives a value, or with those that do not; those of things that need not have happened, as
dead letters, must at least be right. It prints how many there are, as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Sequence

DASHBOARD = Path(__file__).parents[4] / "deploy" / "observability" / "grafana" / "dashboards" / "loop.json"
PATIENCE_S = 60.0
NOT_OF_EVERY_DAY = ("dead_letters", "breaker", "retries", "budget_stops", "cache", "stateloop_sink")
"""Figures that are divided by a label, and not there before the first of their kind has happened or runs."""


def expressions(dashboard: dict[str, Any]) -> list[str]:
    """Return the expressions of a dashboard, with Grafana's interval filled in."""
    targets = [target for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return [target["expr"].replace("$__rate_interval", "30s") for target in targets]


def values(prometheus: str, expression: str) -> int:
    """Return the number of values of an expression. Raises HTTPError for a wrong one."""
    query = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"http://{prometheus}/api/v1/query?{query}", timeout=10) as answer:
        return len(json.load(answer)["data"]["result"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask: 0, or 1 with the expressions that give nothing."""
    made = argparse.ArgumentParser(prog="python -m tests.compose.lab.dashboard")
    made.add_argument("--prometheus", required=True)
    options = made.parse_args(arguments)
    queries = expressions(json.loads(DASHBOARD.read_text(encoding="utf-8")))

    def empty() -> list[str]:
        return [
            query
            for query in queries
            if values(options.prometheus, query) == 0 and not any(metric in query for metric in NOT_OF_EVERY_DAY)
        ]

    try:
        until(lambda: not empty(), "a value of every figure of the dashboard", PATIENCE_S)
    except AssertionError as error:
        print(f"{error}; nothing for: {'; '.join(empty())}", file=sys.stderr)
        return 1
    print(json.dumps({"figures": len(queries)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
