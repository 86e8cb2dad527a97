"""Checks a set-up and reports problems with their remedies: `stateloop doctor`."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from contracts.errors import StateloopError
from contracts.model.suite import load_suite
from contracts.settings import read
from services.enrichment.settings import EnrichmentSettings
from services.runtime.terminal import TerminalConsole
from services.tools.cli import checks
from services.tools.cli.checks import CheckResult, Finding, failed, ok, warning
from services.tools.cli.local_defaults import local_defaults
from services.tools.cli.sink_check import SINK_URL, sink_store
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

STYLES = {CheckResult.OK: "green", CheckResult.WARNING: "yellow", CheckResult.FAILED: "red"}


def findings() -> Iterator[Finding]:
    """Check one thing after the other. A check that needs a failed one is left out."""
    try:
        defaults = local_defaults(os.environ)
        os.environ.update(defaults)
        settings, worker = read(JobSettings), read(EnrichmentSettings)
        suite = load_suite(settings.application)
    except StateloopError as error:
        yield failed("Settings", error)
        return
    yield ok("Settings", f"application {settings.application}, brokers {settings.kafka}")
    if defaults:
        yield ok("Defaults", f"those of `stateloop up` for {', '.join(sorted(defaults))}")
    yield from checks.runtime(settings.jars)
    for application, own in settings.by_application(suite):
        yield from checks.processor(application)
        topics, topic_findings = checks.topics(own, application)
        yield from topic_findings
        if topics:
            yield from checks.owners(own, application)
            yield from checks.broker_clock(own, application, time.time())
            yield from checks.checkpoint(own, application, topics)
    for application, raw in suite.raw_sources():
        yield checks.raw_source(settings, application, raw)
    for problem in worker.uncalled_apis(suite.applications):
        yield warning("APIs", problem)
    try:
        urls = worker.base_urls(suite.applications)
    except StateloopError as error:
        yield failed("APIs", error)
    else:
        yield from asyncio.run(checks.apis(urls, worker.allowed_networks))
    if SINK_URL in os.environ:
        yield asyncio.run(sink_store(suite))


def main() -> int:
    """Print a line for each finding. Returns 1 when one failed, else 0."""
    console, results = TerminalConsole(highlight=False, soft_wrap=True), set[CheckResult]()
    for finding in findings():
        results.add(finding.result)
        console.print(f"[{STYLES[finding.result]}]{finding.result:8}[/]", end="")
        console.print(f"{finding.subject}: {finding.text}", markup=False)
    return int(CheckResult.FAILED in results)
