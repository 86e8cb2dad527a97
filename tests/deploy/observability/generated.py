"""Writes what is made of the alert rules: `python -m tests.deploy.observability.generated`."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy" / "observability" / "rules.yml"
MANIFEST = ROOT / "deploy" / "kubernetes" / "monitoring" / "rules.yaml"
DOCUMENT = ROOT / "docs" / "reference" / "observability.md"
BEGIN, END = "<!-- alerts: python -m tests.deploy.observability.generated -->\n", "<!-- end of alerts -->"
HEAD = """\
# Made of deploy/observability/rules.yml: python -m tests.deploy.observability.generated
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: stateloop
spec:
"""


def rules() -> list[dict[str, Any]]:
    """All alerts."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def manifest() -> str:
    """Return the rules as a resource of Prometheus' operator."""
    _, begin, groups = RULES.read_text(encoding="utf-8").partition("groups:\n")
    return HEAD + indent(begin + groups, "  ")


def table() -> str:
    """Return a row for each alert, with a link to its runbook."""
    rows = [
        f"| [{rule['alert']}]({runbook(rule)}) | {rule['labels']['severity']} | {rule['for']} "
        f"| {rule['annotations']['summary']} |"
        for rule in rules()
    ]
    return "\n".join(("| alert | severity | fires after | meaning |", "|---|---|---|---|", *rows, ""))


def runbook(rule: dict[str, Any]) -> str:
    """Return the link from the page of the reference."""
    return f"../{rule['annotations']['runbook'].removeprefix('docs/')}"


def document() -> str:
    """Return the page of the reference with the current table."""
    before, begin, tail = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = tail.partition(END)
    assert begin, BEGIN
    assert end, END
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    MANIFEST.write_text(manifest(), encoding="utf-8")
    DOCUMENT.write_text(document(), encoding="utf-8")
