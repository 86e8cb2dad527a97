"""The alert rules as files: what they name exists, and what is made of them is current."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from contracts.metrics import CATALOGUE
from tests.deploy.observability.generated import DOCUMENT, MANIFEST, ROOT, RULES, document, manifest, rules
from tests.docs.test_docs import HEADING, is_there

if TYPE_CHECKING:
    from collections.abc import Mapping

STALE = "stale: run `python -m tests.deploy.observability.generated`"
TROUBLESHOOTING = "docs/how-to/troubleshooting.md"
OF_OTHERS: Mapping[str, set[str]] = {
    "up": set(),
    "process_start_time_seconds": set(),
    "kubelet_volume_stats_available_bytes": {"persistentvolumeclaim"},
    "kubelet_volume_stats_capacity_bytes": {"persistentvolumeclaim"},
}
"""Metrics of Prometheus, of its client library and of Kubernetes, with their labels."""
OF_TARGETS = {"job", "instance"}
OF_WORKERS = {"application", "alerts"}
"""Labels of a worker process, which has several workers."""
NAME = re.compile(r"\b(?:stateloop|kubelet|process)_\w+|\bup\b")


def labels() -> dict[str, set[str]]:
    """The labels of each metric."""
    own = {
        metric.exported: {*metric.labels} | (OF_WORKERS if metric.part == "worker" else set()) for metric in CATALOGUE
    }
    return {name: OF_TARGETS | found for name, found in (own | dict(OF_OTHERS)).items()}


EACH_RULE = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])


@EACH_RULE
def test_every_metric_exists_and_has_the_labels(rule: dict[str, Any]) -> None:
    known = labels()
    named = NAME.findall(rule["expr"])
    assert named
    assert [name for name in named if name not in known] == []
    selectors = re.findall(r"(\w+)\{([^}]*)\}", rule["expr"])
    assert [
        (name, one) for name, text in selectors for one in re.findall(r"(\w+)=", text) if one not in known[name]
    ] == []
    divided = {one for found in re.findall(r"\b(?:by|on) \(([^)]*)\)", rule["expr"]) for one in found.split(", ")}
    assert divided <= set().union(*(known[name] for name in named))


@EACH_RULE
def test_every_alert_has_a_severity_a_summary_and_a_runbook(rule: dict[str, Any]) -> None:
    assert rule["alert"].startswith("Stateloop")
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["for"]
    assert rule["annotations"] == {
        "summary": rule["annotations"]["summary"],
        "runbook": f"{TROUBLESHOOTING}#{rule['alert'].lower()}",
    }
    assert is_there(ROOT / "README.md", rule["annotations"]["runbook"])


def test_every_runbook_is_that_of_an_alert() -> None:
    headings = HEADING.findall((ROOT / TROUBLESHOOTING).read_text(encoding="utf-8"))
    runbooks = [heading for heading in headings if heading.startswith("Stateloop")]
    assert runbooks == [rule["alert"] for rule in rules()]


def test_the_table_and_the_manifest_are_made_of_the_rules() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), STALE
    assert MANIFEST.read_text(encoding="utf-8") == manifest(), STALE


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False)  # noqa: S607
    assert done.returncode == 0, done.stdout + done.stderr
