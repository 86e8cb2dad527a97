"""The policy of an API: times, attempts, meanings of statuses, and the limits that protect the API and the worker."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from contracts.errors import DeclarationError
from contracts.types.declaration import spelled

NO_TIME = timedelta(0)
STATUSES = range(100, 600)


class Declared(BaseModel):
    """The base of a policy and its parts. Raises DeclarationError with a correct form for an impossible value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    if not TYPE_CHECKING:  # a signature of its own would hide the fields from the type checker

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = f"{type(self).__name__}({'.'.join(str(part) for part in first['loc'])})"
                write = f"Write some of these: {', '.join(type(self).model_fields)}"
                raise DeclarationError(where, first["msg"], write) from error

    def _must(self, field: str, is_valid: bool, problem: str, write: str) -> None:  # noqa: FBT001  # the positional argument is the condition
        if not is_valid:
            where = f"{type(self).__name__}({field}={spelled(getattr(self, field))})"
            raise DeclarationError(where, problem, f"Write {write}")


class RateLimit(Declared):
    """At most `calls` in any period of `per`, by each worker: divide the API's limit by the number of workers."""

    calls: int
    per: timedelta = timedelta(seconds=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._must("calls", self.calls >= 1, "lets no call through", "calls=10, or leave the rate out for no limit")
        self._must("per", self.per > NO_TIME, "is no time", "per=timedelta(seconds=1)")
        return self


class Breaker(Declared):
    """The circuit breaker of an API: while it is open, requests wait; while it is half open, a few probe the API.

    It is also open for the time of a Retry-After header.
    """

    share: float = 0.5
    """The share of failed calls at which it opens: no answer, a retryable status, or a body that is not JSON."""
    calls: int = 50
    """The maximum number of last calls that count."""
    failures: int = 5
    """The minimum number of failures at which it opens."""
    window: timedelta = timedelta(minutes=1)
    """The time for which a call counts."""
    open_for: timedelta = timedelta(seconds=1)
    """The time without calls before it is half open."""
    probes: int = 3
    """The number of calls while it is half open: it closes when too few of them fail to open it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._must("share", 0 < self.share <= 1, "is no share", "share=0.5 to open when half of the calls fail")
        self._must("failures", self.failures >= 1, "opens it without a failure", "failures=5")
        self._must("calls", self.calls >= self.failures, "holds too few to open it", f"calls={self.failures} or more")
        self._must("window", self.window > NO_TIME, "remembers no call", "window=timedelta(minutes=1)")
        self._must("open_for", self.open_for > NO_TIME, "never lets the API rest", "open_for=timedelta(seconds=1)")
        self._must("probes", self.probes >= 1, "never lets it close again", "probes=3")
        return self


class Cache(Declared):
    """The lifetime of cached answers, in one worker. A call never gets an answer older than its `stale_after`."""

    results: timedelta = timedelta(minutes=1)
    absences: timedelta = timedelta(seconds=10)
    size: int = 16 * 1024 * 1024
    """In bytes: beyond it, the least recently used answers are dropped."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        write = "timedelta(0) to keep none"
        self._must("results", self.results >= NO_TIME, "is negative", f"results={write}")
        self._must("absences", self.absences >= NO_TIME, "is negative", f"absences={write}")
        self._must("size", self.size >= 1, "has no room", "cache=None in the policy to keep no answers")
        return self


class Policy(Declared):
    """The rules by which one worker calls one API. A call is one attempt; a request may make several.

    Raises DeclarationError for a policy that allows no call.
    """

    timeout: timedelta = timedelta(seconds=5)
    """The maximum time of one call."""
    deadline: timedelta = timedelta(minutes=5)
    """The maximum time of all attempts with the waits between them, without waits for a slot or an open breaker."""
    attempts: int = 12
    """The maximum number of attempts, after which the request is a failure: by default after about a minute."""
    backoff: timedelta = timedelta(milliseconds=200)
    """The longest wait before the second attempt; it doubles with each further one (full jitter)."""
    max_backoff: timedelta = timedelta(seconds=30)
    """The longest wait before any attempt, Retry-After excepted."""
    max_retry_after: timedelta = timedelta(minutes=1)
    """The longest Retry-After of an API that is respected."""

    success: frozenset[int] = frozenset({200, 201, 203})
    absence: frozenset[int] = frozenset({204, 404, 410})
    retryable: frozenset[int] = frozenset({408, 425, 429, *range(500, 600)})
    """The meanings of the statuses. Every other status is a permanent failure."""

    concurrency: int = 100
    """The maximum number of calls in flight."""
    rate: RateLimit | None = None
    breaker: Breaker | None = Breaker()
    cache: Cache | None = Cache()
    largest_answer: int = 1024 * 1024
    """In bytes, after decompression."""
    redirects: int = 0
    """The maximum number of redirects; each address is checked as the first one is."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._must("timeout", self.timeout > NO_TIME, "leaves a call no time", "timeout=timedelta(seconds=5)")
        least = spelled(self.timeout)
        self._must("deadline", self.deadline >= self.timeout, f"is less than timeout={least}", f"deadline={least}")
        self._must("attempts", self.attempts >= 1, "allows no call", "attempts=1 for a single call")
        self._must("backoff", self.backoff >= NO_TIME, "is negative", "backoff=timedelta(0) to call again at once")
        least = spelled(self.backoff)
        longer = self.max_backoff >= self.backoff
        self._must("max_backoff", longer, f"is less than backoff={least}", f"max_backoff={least} or more")
        obeyed = self.max_retry_after >= NO_TIME
        self._must("max_retry_after", obeyed, "is negative", "max_retry_after=timedelta(0) not to obey it")
        self._must("concurrency", self.concurrency >= 1, "lets no call through", "concurrency=100")
        self._must("largest_answer", self.largest_answer >= 1, "takes no answer", "largest_answer=1024 * 1024")
        self._must("redirects", self.redirects >= 0, "is negative", "redirects=0 to follow none")
        self._check_statuses()
        return self

    def _check_statuses(self) -> None:
        self._must("success", bool(self.success), "has no result", "success=frozenset({200})")
        self._must("absence", not self.absence & self.success, "shares a status with success", "each status once")
        others = self.success | self.absence
        self._must("retryable", not self.retryable & others, "shares a status with the others", "each status once")
        for field in ("success", "absence", "retryable"):
            known = all(status in STATUSES for status in getattr(self, field))
            self._must(field, known, "holds what is no status of HTTP", "numbers from 100 to 599")
