"""The stack of compose.yaml on a real Docker engine, from the images to the last volume: `make compose-test`.

It takes the engine that runs here, or starts one of its own. Without one it fails, with the reason.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tests.compose.configured import query_token, variables
from tests.compose.lab import layers, project, sinks, state
from tests.compose.lab.commands import Commands
from tests.compose.lab.court import Court
from tests.compose.lab.engine import find
from tests.compose.lab.errors import LabError
from tests.compose.lab.hardening import require_labels
from tests.compose.lab.images import Images
from tests.compose.lab.scenario import Scenario
from tests.compose.lab.stack import Stack
from tests.compose.lab.steps import Steps
from tests.services.tools.broker.embedded import free_ports

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tests.compose.lab.engine import Engine

CHECKOUT = Path(__file__).parents[3]
HOST_NETWORK = "tests/compose/lab/host-network.yaml"
EACH_VERSION = "tests/compose/lab/each-version.yaml"
WITHOUT_GRAFANA = "tests/compose/lab/without-grafana.yaml"
DAY, NEXT_DAY = "2013-01-01", "2013-01-02"
VERSION = "compose-test"
SOURCE = "https://source.example"
PORTS = ("KAFKA_PORT", "QUERY_PORT", "PROMETHEUS_PORT", "REDIS_PORT", "POSTGRESQL_PORT")
PARTS = ("stack", "layers", "sink", "state", "project")
INTERRUPTED = 130  # the exit code of a shell after Ctrl-C


def main() -> int:
    """Test the stack: 0, or 1 with the reason. Everything is taken down in any case."""
    options = argparse.ArgumentParser(prog="python -m tests.compose.lab", description="Test the stack.")
    options.add_argument("--part", choices=PARTS, action="append", help="this part only")
    parts = options.parse_args().part or PARTS
    signal.signal(signal.SIGTERM, stopped)
    folder = Path(tempfile.mkdtemp(prefix="stateloop-compose-"))
    steps, log = Steps(folder), folder.with_suffix(".log")
    try:
        test(folder, log, steps, parts)
    except LabError as error:
        steps.fail(f"{error}\n(the whole log: {log})")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    steps.summary()
    log.unlink()
    return 0


def test(folder: Path, log: Path, steps: Steps, parts: Collection[str]) -> None:
    """The main path."""
    with steps.step("a Docker engine"):
        engine = find(folder, log)
        steps.report("one of its own, in a network of its own" if engine.own else "the one that runs here")
    commands = Commands(log, engine.environment | settings(free_ports(len(PORTS))))
    copy = checkout(folder)
    network = (HOST_NETWORK,) if engine.own else ()
    only_here = (*network, EACH_VERSION)
    written = project.write(commands, folder, steps) if "project" in parts else folder
    own_stack = Stack(commands, written, tuple(str(CHECKOUT / file) for file in network))
    with engine.building():
        left_out = build(engine, Stack(commands, copy, only_here), folder, steps, parts)
        if "project" in parts:
            project.build(own_stack, steps)
    with engine.running():
        if "stack" in parts:
            stack = Stack(commands, copy, only_here)
            with taken_down(stack):
                Scenario(stack, steps, Court(stack, steps, engine.inside())).run()
        if "layers" in parts:
            commands.environment["REPLAY_FROM"] = NEXT_DAY
            layered = Stack(commands, copy, (*only_here, *layers.FILES, *left_out))
            with taken_down(layered):
                layers.Layers(layered, steps, Court(layered, steps, engine.inside())).run()
        if "sink" in parts:
            stored = Stack(commands, copy, (*only_here, *sinks.FILES))
            with taken_down(stored):
                sinks.Sinks(stored, steps, Court(stored, steps, engine.inside())).run()
        if "state" in parts:
            commands.environment |= {"REPLAY_SPEED": state.SPEED, "STATELOOP_TOKEN": query_token()}
            stack = Stack(commands, copy, only_here)
            with taken_down(stack):
                state.StateCommands(stack, steps, Court(stack, steps, engine.inside())).run()
        if "project" in parts:
            commands.environment |= {"STATELOOP_TOKEN": query_token()}
            with taken_down(own_stack):
                project.Project(own_stack, steps, Court(own_stack, steps, engine.inside())).run()


@contextmanager
def taken_down(stack: Stack) -> Iterator[None]:
    """Remove the stack at the end, also after an error; the log then has the end of its output."""
    try:
        yield
    except LabError:
        stack.logs()
        raise
    finally:
        stack.remove()


def build(engine: Engine, stack: Stack, folder: Path, steps: Steps, parts: Collection[str]) -> tuple[str, ...]:
    """The images that the stack starts from, and ours; gives the files that leave out what cannot be had."""
    images = Images(stack.commands, folder, steps.report, host_network=engine.own)
    pinned = variables()
    with steps.step(f"debian:{pinned['DEBIAN_TAG']}"):
        images.require_debian(pinned["DEBIAN_TAG"])
    with steps.step(f"apache/kafka:{pinned['KAFKA_TAG']}"):
        images.require_broker(pinned["KAFKA_TAG"], pinned["DEBIAN_TAG"])
    left_out: tuple[str, ...] = ()
    if "layers" in parts:
        with steps.step(f"prom/prometheus:{pinned['PROMETHEUS_TAG']}"):
            images.require_prometheus(pinned["PROMETHEUS_TAG"], pinned["DEBIAN_TAG"])
        with steps.step(f"grafana/grafana:{pinned['GRAFANA_TAG']}"):
            left_out = () if images.has_grafana(pinned["GRAFANA_TAG"]) else (WITHOUT_GRAFANA,)
    if "sink" in parts:
        for name, tag in (("redis", pinned["REDIS_TAG"]), ("postgres", pinned["POSTGRESQL_TAG"])):
            with steps.step(f"{name}:{tag}"):
                images.require_store(name, tag, pinned["DEBIAN_TAG"])
    with steps.step("docker compose build"):
        stack.compose("build", f"--build-arg=STATELOOP_SOURCE={SOURCE}")
        for image in ("services", "spark"):
            labels = {"title": f"stateloop-{image}", "version": VERSION, "source": SOURCE, "licenses": "Apache-2.0"}
            require_labels(stack.commands, f"stateloop-{image}:{VERSION}", labels)
        for line in sizes(stack.commands):
            steps.report(line)
    return left_out


def sizes(commands: Commands) -> list[str]:
    """Each image and its size, with its layers, some of which it shares with others."""
    listed = commands.run("docker", "image", "ls", "--format={{.Repository}}:{{.Tag}} {{.Size}}").splitlines()
    return sorted(line for line in listed if "<none>" not in line)


def settings(first_port: int) -> dict[str, str]:
    """Return the variables that differ from .env: a fast day, short batches, and names of the test."""
    return {
        "STATELOOP_VERSION": VERSION,
        **{name: str(first_port + number) for number, name in enumerate(PORTS)},
        "JOB_BATCH": "PT5S",
        "REPLAY_FROM": DAY,
        "REPLAY_DAYS": "1",
        "REPLAY_SPEED": "1000",
        # Two builds at once would make the stages that they share twice, where the builder is the classic one.
        "COMPOSE_PARALLEL_LIMIT": "1",
        "DEBIAN_FRONTEND": "noninteractive",
    }


def checkout(folder: Path) -> Path:
    """A copy of the files that git knows, as they are now: one of them will be changed."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, stdout=subprocess.PIPE, check=True)  # noqa: S607
    copy = folder / "checkout"
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (CHECKOUT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, copy / name, follow_symlinks=False)
    return copy


def stopped(*_: object) -> NoReturn:
    """As Ctrl-C: whatever was started is stopped on the way out."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
