"""An event loop of processes that share a virtual time, and that a simulation stops, resumes and kills."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    Work = Coroutine[Any, Any, Any] | Generator[Any, None, Any]


class Process:
    """The tasks that one process has started. While it is stopped, as by SIGSTOP, none of them runs.

    A killed process is stopped for ever: nothing is left of its memory, and none of its code cleans up.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_stopped = False
        self.is_killed = False
        self.tasks: list[asyncio.Task[Any]] = []
        self.waiting: list[_Handle] = []
        """The callbacks that were due while it was stopped."""


RUNNING: ContextVar[Process | None] = ContextVar("RUNNING", default=None)
"""The process of the code that runs. Its tasks and callbacks inherit it."""


class _Handle:
    """A callback of a process. Implements what asyncio uses of a Handle and of a TimerHandle."""

    __slots__ = ("arguments", "at", "callback", "context", "is_cancelled", "process")

    def __init__(
        self, callback: Callable[..., object], arguments: tuple[Any, ...], context: Context | None, at: float = 0.0
    ) -> None:
        self.callback = callback
        self.arguments = arguments
        self.context = context = copy_context() if context is None else context
        self.process = context.get(RUNNING)
        self.is_cancelled = False
        self.at = at

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.at


class SimulationLoop(asyncio.AbstractEventLoop):
    """Time passes only when nothing is left to do. The order of callbacks depends on nothing outside of the loop."""

    def __init__(self) -> None:
        self._now = 0.0
        self._ready: deque[_Handle] = deque()
        self._timers: list[tuple[float, int, _Handle]] = []
        self._scheduled = 0
        self._is_closed = False
        self.errors: list[BaseException] = []
        """The errors of tasks that nobody awaits."""
        self.thread_s: Callable[[], float] = lambda: 0.005
        """Returns the time until the next call in a thread begins, and until its result arrives."""

    # Processes

    def stop_process(self, process: Process) -> None:
        """Run none of its code from now on."""
        process.is_stopped = True

    def resume_process(self, process: Process) -> None:
        """Run what was due meanwhile, and go on."""
        process.is_stopped = False
        self._ready.extend(process.waiting)
        process.waiting = []

    def kill_process(self, process: Process) -> None:
        """Run none of its code any more."""
        process.is_stopped = process.is_killed = True

    def unwind(self, process: Process) -> None:
        """Cancel the tasks of a process, after the end of the simulation: only now does its code clean up."""
        for task in process.tasks:
            task.cancel()
        self.resume_process(process)

    # AbstractEventLoop

    @override
    def time(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        """Let time pass, as a call that blocks the loop does."""
        self._now += seconds

    @override
    def call_soon(  # type: ignore[override]  # the arguments of asyncio's own callbacks
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        handle = _Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    @override
    def call_later(  # type: ignore[override]  # the arguments of asyncio's own callbacks
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        at = self._now + delay
        handle = _Handle(callback, args, context, at)
        self._scheduled += 1
        heapq.heappush(self._timers, (at, self._scheduled, handle))
        return handle

    @override
    def call_at(  # type: ignore[override]  # the arguments of asyncio's own callbacks
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        handle = _Handle(callback, args, context, when)
        self._scheduled += 1
        heapq.heappush(self._timers, (when, self._scheduled, handle))
        return handle

    @override
    def call_soon_threadsafe(  # type: ignore[override]  # the arguments of asyncio's own callbacks
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        """Call it now: the caller is a step of the loop in place of a thread, and may wait for what the call does."""
        handle = _Handle(callback, args, context)
        handle.context.run(callback, *args)
        return handle

    @override
    def run_in_executor(  # type: ignore[override]  # the arguments of asyncio's own callbacks
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call it a moment later, and return its result a moment after that, in place of a thread.

        It is a request to something outside of the process: it is carried out although the process is stopped.
        """
        future = self.create_future()

        def call() -> None:
            try:
                settle = partial(future.set_result, func(*args))
            except Exception as error:  # noqa: BLE001  # raised by the caller
                settle = partial(future.set_exception, error)
            self.call_later(self.thread_s(), lambda: future.done() or settle(), context=Context())

        self.call_later(self.thread_s(), call, context=Context())
        return future

    @override
    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    @override
    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None, **_: Any) -> Any:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        process = (copy_context() if context is None else context).get(RUNNING)
        if process is not None:
            process.tasks.append(task)
        return task

    def start(self, process: Process, work: Work) -> asyncio.Task[Any]:
        """Start a task as a process. What it starts belongs to the process too."""
        context = copy_context()
        context.run(RUNNING.set, process)
        task: asyncio.Task[Any] = self.create_task(work, context=context)
        return task

    @override
    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(future, loop=self)
        asyncio._set_running_loop(self)  # noqa: SLF001  # the function for implementations of event loops
        try:
            self._run_ready()
            while not task.done():
                self._pass_time()
                self._run_ready()
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001
        return task.result()

    def _run_ready(self) -> None:
        ready = self._ready
        while ready:
            handle = ready.popleft()
            process = handle.process
            if handle.is_cancelled:
                continue
            if process is not None and process.is_stopped:
                process.waiting.append(handle)
                continue
            handle.context.run(handle.callback, *handle.arguments)

    def _pass_time(self) -> None:
        """Pass to the next timers."""
        timers = self._timers
        while timers and timers[0][2].is_cancelled:
            heapq.heappop(timers)
        assert timers, "everything waits for what never happens"
        self._now = now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= now:
            self._ready.append(heapq.heappop(timers)[2])

    @override
    def is_running(self) -> bool:
        return False

    @override
    def is_closed(self) -> bool:
        return self._is_closed

    @override
    def close(self) -> None:
        self._is_closed = True

    @override
    def get_debug(self) -> bool:
        return False

    @override
    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if isinstance(error := context.get("exception"), BaseException):
            self.errors.append(error)

    @override
    async def shutdown_asyncgens(self) -> None:
        pass
