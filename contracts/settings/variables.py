"""The environment variables of all parts, so that each part refuses one that none of them reads.

The parts share one environment: compose, Kubernetes and the launcher give a part variables that only others read. No
part imports another, so their names are listed here; a test compares the list with the settings models.
"""

from collections.abc import Collection
from difflib import get_close_matches

PREFIX = "STATELOOP_"
SERVICE_HOST = "_SERVICE_HOST"

NAMES = (
    "ALLOWED_NETWORKS",
    "APIS",
    "API_HEADERS",
    "APPLICATION",
    "AUTHOR",
    "BATCH",
    "BROKER_DATA",
    "BROKER_HEAP",
    "BROKER_PORT",
    "BROKER_SESSION",
    "BROWSE",
    "CATCH_UP",
    "CHECKPOINT",
    "CLASS_ARCHIVE",
    "COMMIT_EVERY",
    "DATA",
    "DRAIN",
    "DRIVER_MEMORY",
    "FAILURE_MIN_COUNT",
    "FAILURE_RATE_THRESHOLD",
    "FAILURE_TRIAL_INTERVAL",
    "FAILURE_WINDOW",
    "GIVE_UP",
    "GROUP",
    "GROUP_PROTOCOL",
    "HTTP_HOST",
    "HTTP_PORT",
    "INSTANCE",
    "IN_FLIGHT",
    "IVY_SETTINGS",
    "JARS",
    "JAVA_OPTIONS",
    "KAFKA",
    "KAFKA_OPTIONS",
    "LARGEST_REQUEST",
    "LEASE",
    "LINE_EVERY",
    "LOG_LEVEL",
    "MAX_BATCH_KEYS",
    "MAX_DEFERRED",
    "MAX_PAGE_KEYS",
    "MAX_POLL_RECORDS",
    "MAX_UNCOMMITTED",
    "MAX_WAIT",
    "MIN_INSYNC_REPLICAS",
    "ORIGINS",
    "PARTITIONS",
    "PATIENCE",
    "PEER_TOKEN",
    "QUERY_DATA",
    "RATE",
    "RECENT_ENTRIES",
    "REFERENCE_FAILURE_RATE",
    "REFERENCE_HOST",
    "REFERENCE_LATENCY_MS",
    "REFERENCE_PORT",
    "REFERENCE_RATE_LIMIT",
    "REFERENCE_SEED",
    "REPLAY_DAYS",
    "REPLAY_FROM",
    "REPLAY_SPEED",
    "REPLICAS",
    "REPLICATION",
    "SCRAPE_EVERY",
    "SCRAPE_TARGETS",
    "SESSION_TIMEOUT",
    "SINK_BATCH",
    "SINK_PREFIX",
    "SINK_RETENTION",
    "SINK_STATES",
    "SINK_STORE",
    "SINK_TIMEOUT",
    "SINK_URL",
    "SINK_WINDOWS",
    "SOURCE",
    "STATE_PARTITIONS",
    "STATS_EVERY",
    "STATUS",
    "STOP_WITHIN",
    "STUCK_AFTER",
    "TAKE_OVER",
    "TOKEN",
    "TOKENS",
    "TOKEN_FILE",
    "TRACING",
    "UNFINISHED",
    "UNFINISHED_BYTES",
    "URL",
    "VERSION",
    "WAITS",
    "WATCH_ALL_WAITING_BYTES",
    "WATCH_CONNECTIONS",
    "WATCH_MARKS",
    "WATCH_STALLED",
    "WATCH_SUBSCRIPTIONS",
    "WATCH_WAITING",
    "WEBHOOK_SECRETS",
    "WHEEL",
    "WORKERS",
)
"""All of them without the prefix: the fields of the settings models, VERSION, the tag of images in compose.yaml, and
WHEEL, which the Makefile of a new project installs."""

KNOWN = frozenset(f"{PREFIX}{name}" for name in NAMES)


def unknown_variables(environment: Collection[str]) -> list[tuple[str, str]]:
    """Return the variables that no part reads, each with what to do about it."""
    names = {name.upper(): name for name in environment if name.upper().startswith(PREFIX)}
    links = tuple(name.removesuffix(SERVICE_HOST) for name in names if name.endswith(SERVICE_HOST))
    unknown = [name for name in sorted(names) if name not in KNOWN and not _is_service_link(name, links)]
    return [(names[name], _advice(name)) for name in unknown]


def _is_service_link(name: str, links: tuple[str, ...]) -> bool:
    """Return whether Kubernetes sets it: it gives each pod the addresses of the namespace's services."""
    return any(name.startswith((f"{link}_SERVICE_", f"{link}_PORT")) for link in links)


def _advice(name: str) -> str:
    near = get_close_matches(name.removeprefix(PREFIX), NAMES, 1)
    return f"no part of Stateloop reads it: {f'write {PREFIX}{near[0]}' if near else 'unset it'}"
