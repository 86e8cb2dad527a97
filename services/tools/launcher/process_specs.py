"""The specifications of all processes, in the order in which they start."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from contracts.model.suite import Suite, load_suite
from services.tools.launcher.process_spec import ProcessSpec
from services.tools.launcher.readiness import All, Finished, HttpOk, KafkaAnswers, OutputHas, Runs
from services.tools.launcher.settings import OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from services.tools.launcher.folders import Folders
    from services.tools.launcher.settings import LauncherSettings

HERE = "127.0.0.0/8"
"""The network of this machine, at which workers may call the reference APIs."""
QUERY, JOB, DERIVE, WORKERS = 0, 1, 2, OTHERS
"""The offset of each process's port from the first one."""


def process_specs(settings: LauncherSettings, folders: Folders, *, headless: bool) -> tuple[ProcessSpec, ...]:
    """Return the processes of a launch. Raises DeclarationError."""
    suite = load_suite(settings.application)
    packages = _packages(settings.application, suite)
    derives = any(application.derived_names for application in suite.applications)
    specs: list[ProcessSpec] = []
    if settings.kafka is None:
        specs.append(broker(settings, folders))
    specs.append(topics(settings))
    if apis := _first("reference", packages):
        specs.append(reference(settings, apis))
    specs.append(job(settings, folders))
    specs.extend(workers(settings))
    if derives:
        specs.append(derive(settings))
    specs.append(query(settings, folders, derives=derives))
    if data := _first("replay", packages):
        specs.append(replay(settings, folders, data))
    if live_data := _first("source", packages):
        specs.append(source(settings, live_data))
    if not headless:
        specs.append(live(settings, folders))
    return tuple(specs)


def broker(settings: LauncherSettings, folders: Folders) -> ProcessSpec:
    """The embedded Kafka broker."""
    env = {
        "STATELOOP_BROKER_DATA": str(folders.broker),
        "STATELOOP_BROKER_PORT": str(settings.broker_port),
        "STATELOOP_JARS": str(settings.jars),
    }
    does = f"Kafka answers at {settings.bootstrap}"
    # It prints its settings after it has found its port free, so no other broker answers there.
    ready = All((OutputHas("stateloop broker: {"), KafkaAnswers(settings.bootstrap)))
    return ProcessSpec("broker", does, module("services.tools.broker"), ready, env, stop_within_s=20)


def topics(settings: LauncherSettings) -> ProcessSpec:
    """Return the process that creates the topics, and exits."""
    env = shared(settings)
    if settings.kafka is None:  # a single broker holds one replica
        env["STATELOOP_REPLICATION"] = "1"
    return ProcessSpec(
        "topics", "the topics are there", module("services.tools.topics"), Finished(), env, finishes=True
    )


def reference(settings: LauncherSettings, name: str) -> ProcessSpec:
    """Return the reference APIs, which the application's enrichments call."""
    does = f"the reference APIs answer at 127.0.0.1:{settings.reference_port}"
    env = {"STATELOOP_REFERENCE_PORT": str(settings.reference_port)}
    ready = All((OutputHas("stateloop reference: {"), HttpOk(settings.reference_port)))
    return ProcessSpec("reference", does, module(name), ready, env)


def job(settings: LauncherSettings, folders: Folders) -> ProcessSpec:
    """The Spark job, with its working files in the data folder."""
    env = (
        shared(settings)
        | {
            "STATELOOP_CHECKPOINT": str(folders.checkpoint.absolute()),
            "STATELOOP_BATCH": f"PT{settings.batch.total_seconds():g}S",
            "STATELOOP_JARS": str(settings.jars),
            "SPARK_LOCAL_DIRS": str(folders.scratch.absolute()),
        }
        | watched(settings, JOB)
    )
    started = OutputHas('"job": "started"')
    return ProcessSpec("job", "the Spark job runs", module("spark_app"), started, env, patience_s=300, stop_within_s=30)


def workers(settings: LauncherSettings) -> Iterator[ProcessSpec]:
    """The enrichment workers."""
    env = api_addresses(settings) | shared(settings)
    for number in range(1, settings.workers + 1):
        does = f"enrichment worker {number} of {settings.workers} runs"
        environment = env | watched(settings, WORKERS + number - 1)
        yield ProcessSpec(
            f"worker-{number}", does, module("services.enrichment"), OutputHas("stateloop worker: {"), environment
        )


def api_addresses(settings: LauncherSettings) -> dict[str, str]:
    """Return the settings with the addresses of the APIs of the environment, and of the reference APIs."""
    apis = {"reference": f"http://127.0.0.1:{settings.reference_port}"} | settings.apis
    networks = dict.fromkeys((HERE, *settings.allowed_networks))
    return {"STATELOOP_APIS": json.dumps(apis), "STATELOOP_ALLOWED_NETWORKS": json.dumps([*networks])}


def derive(settings: LauncherSettings) -> ProcessSpec:
    """The worker that writes the states derived from the snapshots."""
    env = shared(settings) | watched(settings, DERIVE)
    return ProcessSpec(
        "derive", "the derived states are written", module("services.derive"), OutputHas("stateloop derive: {"), env
    )


def query(settings: LauncherSettings, folders: Folders, *, derives: bool) -> ProcessSpec:
    """The query service, with the console."""
    watched_parts = {
        "job": [address(settings, JOB)],
        "enrichment": [address(settings, WORKERS + number) for number in range(settings.workers)],
        "derive": [address(settings, DERIVE)] if derives else [],
    }
    env = (
        shared(settings)
        | watched(settings, QUERY)
        | {
            "STATELOOP_QUERY_DATA": str(folders.query),
            "STATELOOP_INSTANCE": "query",
            "STATELOOP_SCRAPE_TARGETS": json.dumps(watched_parts),
        }
    )
    page = address(settings, QUERY)
    ready = All((OutputHas("stateloop query: {"), HttpOk(settings.http_port + QUERY, "/readyz")))
    return ProcessSpec("query", f"the console is at {page}", module("services.query"), ready, env, page=page)


def replay(settings: LauncherSettings, folders: Folders, name: str) -> ProcessSpec:
    """Return the replay of the application's data; it resumes at its position."""
    options = {
        "--from": settings.replay_from.isoformat(),
        "--days": str(settings.replay_days),
        "--speed": f"{settings.replay_speed:g}",
        "--position": str(folders.position),
    }
    command = module(name, *(word for option in options.items() for word in option))
    does = f"the replay sends events at {settings.replay_speed:g} times their speed"
    return ProcessSpec("replay", does, command, Runs(), shared(settings), finishes=True)


def source(settings: LauncherSettings, name: str) -> ProcessSpec:
    """Return the process that sends the application's records as they come into being."""
    return ProcessSpec(
        "source", "the source sends records", module(name), OutputHas("stateloop source: {"), shared(settings)
    )


def live(settings: LauncherSettings, folders: Folders) -> ProcessSpec:
    """The live view, which has the terminal."""
    env = {"STATELOOP_URL": address(settings, QUERY), "STATELOOP_STATUS": str(folders.status)}
    return ProcessSpec(
        "live", "the live view shows", module("services.tools.cli", "live"), Runs(), env, finishes=True, foreground=True
    )


def shared(settings: LauncherSettings) -> dict[str, str]:
    """Return the settings that several processes share."""
    return {"STATELOOP_APPLICATION": settings.application, "STATELOOP_KAFKA": settings.bootstrap}


def watched(settings: LauncherSettings, number: int) -> dict[str, str]:
    """Return the setting of the HTTP port of a process."""
    return {"STATELOOP_HTTP_PORT": str(settings.http_port + number)}


def address(settings: LauncherSettings, number: int) -> str:
    """Return the address of a process."""
    return f"http://127.0.0.1:{settings.http_port + number}"


def module(name: str, *options: str) -> tuple[str, ...]:
    """Return the command that runs a module with this Python."""
    return (sys.executable, "-m", name, *options)


def _packages(reference: str, suite: Suite) -> tuple[str, ...]:
    """Return the package that declares the suite, and those that declare its states, which may be others."""
    modules = (reference.partition(":")[0], *(application.state.__module__ for application in suite.applications))
    return tuple(dict.fromkeys(module.rpartition(".")[0] for module in modules if "." in module))


def _first(name: str, packages: Iterable[str]) -> str | None:
    """Return the first module of this name in the packages; None if there is none."""
    return next((module for package in packages if _is_there(module := f"{package}.{name}")), None)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
