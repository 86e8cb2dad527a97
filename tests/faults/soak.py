"""The loop for hours under load, with kills and rebalances: `make soak`. Writes its figures, and a picture of them."""

from __future__ import annotations

import csv
import math
import os
import random
import signal
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.application import passing
from tests.faults.catalogue import WORKERS, Fault, signalled
from tests.faults.load import Traffic
from tests.faults.reader import read_state
from tests.faults.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.faults.catalogue import Inject

PARTS = ("job", "worker-1", "worker-2", "query", "broker")
MINUTE_S, KILL_AT = 60.0, 10
REBALANCE_EVERY, REBALANCE_AT = 10, 5
"""In the fifth of every ten minutes a worker is stopped, and another takes its partitions."""
TRAFFIC = Traffic(rate=500, meters=500, new_plates=0.02)
EXPIRED_AFTER = math.ceil(passing.kept_for / timedelta(minutes=1)) + 5
"""After so many minutes no reader gets the meters of a minute."""
SAMPLE = 50
WIDTH, HEIGHT, GAP, LEFT = 860, 90, 34, 16
COLORS = ("#4f46e5", "#d97706", "#059669", "#dc2626", "#6b7280")
PANELS = {"memory_mb": "memory, MB", "descriptors": "file descriptors", "threads": "threads"}
SINGLE = {
    "disk_mb": "disk, MB",
    "events": "events in the minute",
    "published_p99_ms": "event to snapshot, p99, ms",
    "read_p99_ms": "read p99, ms",
    "expiry_behind_s": "expiry behind, s",
    "stall_s": "longest stall, s",
}
STYLE = (
    "svg{font:12px system-ui,sans-serif;color-scheme:light dark}text{fill:#111827}polyline{fill:none;stroke-width:1.5}"
    ".disturbed{stroke:#9ca3af;stroke-dasharray:2 3}"
    "@media(prefers-color-scheme:dark){text{fill:#f3f4f6}}"
)


def soak(folder: Path, hours: float, kill_every: int, out: Path) -> None:
    """Run for hours, in minutes of load that are each judged; kill a part in the tenth of `kill_every` minutes."""
    rows: list[dict[str, float | str]] = []
    chance, end = random.Random(hours), time.monotonic() + hours * 3600
    former: list[list[str]] = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with Stage(folder, application="passing") as stage:
        while time.monotonic() < end:
            minute = len(rows)
            disturbed, inject = _disturbance(minute, kill_every, chance)
            rows.append({"minute": minute, "disturbed": disturbed, **soaked(stage, inject, minute)})
            former.append(list(stage.load.meters)[:SAMPLE])
            rows[-1]["kept"] = kept(stage, former[-EXPIRED_AFTER]) if minute >= EXPIRED_AFTER else 0
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
            with out.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
            out.with_suffix(".svg").write_text(picture(rows), encoding="utf-8")


def _disturbance(minute: int, kill_every: int, chance: random.Random) -> tuple[str, Inject]:
    """Return what happens in a minute, and its name."""
    if minute % kill_every == KILL_AT % kill_every:
        part = chance.choice(PARTS)
        return f"kill -9 {part}", signalled(signal.SIGKILL, part)
    if minute % REBALANCE_EVERY == REBALANCE_AT:
        worker = chance.choice(WORKERS)
        return f"SIGTERM {worker}", signalled(signal.SIGTERM, worker)
    return "", Fault.inject


def soaked(stage: Stage, inject: Inject, seed: int) -> dict[str, float]:
    """Run a minute of load, and return its figures and its verdict."""
    began = time.monotonic()
    verdict = stage.run(Fault(0, "soak", inject, MINUTE_S, traffic=TRAFFIC), seed)
    load, reader, delays = stage.load, stage.reader, stage.topics.taken_delays_ms()
    cost = {f"{name}_{part}": value for part in PARTS for name, value in used(stage, part).items()}
    return {
        **verdict._asdict(),
        "events": load.sent,
        "seconds": round(time.monotonic() - began, 1),
        "read_p50_ms": round(1000 * statistics.median(reader.latencies), 2),
        "read_p99_ms": round(1000 * statistics.quantiles(reader.latencies, n=100)[98], 2),
        "published_p50_ms": statistics.median(delays),
        "published_p99_ms": statistics.quantiles(delays, n=100)[98],
        "expiry_behind_s": round((datetime.now(UTC) - stage.expired_until()).total_seconds(), 1),
        "disk_mb": round(sum(size_of(path) for path in stage.folder.rglob("*")) / 1e6, 1),
        **cost,
    }


def kept(stage: Stage, names: Iterable[str]) -> int:
    """Return how many of these meters a reader still gets."""
    return sum(read_state(stage.launched.http, name)[1] is not None for name in names)


def used(stage: Stage, part: str) -> dict[str, float]:
    """Return the memory, descriptors and threads of all processes of a part.

    The memory is their proportional set size: a process that a JVM forks shares all of its memory.
    """
    group = os.getpgid(stage.launched.runs(part))
    found = dict.fromkeys(PANELS, 0.0)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(process.name)) != group:
                continue
            memory, status = (
                dict(line.split(":", 1) for line in (process / name).read_text().splitlines() if ":" in line)
                for name in ("smaps_rollup", "status")
            )
            found["memory_mb"] += round(int(memory["Pss"].split()[0]) / 1024, 1)
            found["threads"] += int(status["Threads"])
            found["descriptors"] += len(list((process / "fd").iterdir()))
        except (OSError, KeyError):  # it has ended
            continue
    return found


def size_of(path: Path) -> int:
    """Return the bytes that a file takes on the disk; 0 for one that is gone."""
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0


def picture(rows: list[dict[str, float | str]]) -> str:
    """Return an SVG with a panel for each figure."""
    panels = [(title, [(part, f"{name}_{part}") for part in PARTS]) for name, title in PANELS.items()]
    panels += [(title, [("", name)]) for name, title in SINGLE.items()]
    drawn: list[str] = []
    for number, panel in enumerate(panels):
        drawn += _panel(rows, LEFT + number * (HEIGHT + GAP), *panel)
    height = len(panels) * (HEIGHT + GAP) + LEFT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"><style>{STYLE}</style>'
    return "\n".join([head, *drawn, "</svg>"]) + "\n"


def _panel(rows: list[dict[str, float | str]], top: int, title: str, lines: list[tuple[str, str]]) -> list[str]:
    most = max(float(row[column]) for row in rows for _, column in lines) or 1.0
    drawn = [f'<text x="{LEFT}" y="{top + 12}">{title} (top: {most:g}), {len(rows)} minutes</text>']
    step = (WIDTH - 2 * LEFT) / max(1, len(rows) - 1)
    for number, (name, column) in enumerate(lines):
        color = COLORS[number]
        points = " ".join(
            f"{LEFT + at * step:.1f},{top + 18 + HEIGHT * (1 - float(row[column]) / most):.1f}"
            for at, row in enumerate(rows)
        )
        drawn.append(f'<polyline stroke="{color}" points="{points}"/>')
        drawn.append(f'<text x="{380 + 90 * number}" y="{top + 12}" style="fill:{color}">{name}</text>')
    marks = " ".join(f"M{LEFT + at * step:.1f},{top + 18}v{HEIGHT}" for at, row in enumerate(rows) if row["disturbed"])
    return [*drawn, f'<path class="disturbed" d="{marks}"/>']
