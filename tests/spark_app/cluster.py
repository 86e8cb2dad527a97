"""A Spark standalone cluster on this machine, from the pip package."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from tests.deadline import DEADLINE_S
from tests.jvm import COMPILE_FAST
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.running import until

if TYPE_CHECKING:
    from typing import Self

HOME = Path(pyspark.__file__).parent
CHECKOUT = Path(__file__).parents[2]


class Cluster:
    """A master, and a worker with this many slots."""

    def __init__(self, folder: Path, slots: int) -> None:
        self._folder, self._slots = folder, slots
        self._port = free_port_pair()
        self.master = f"spark://127.0.0.1:{self._port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Start both, and wait until the worker is registered."""
        deploy = "org.apache.spark.deploy"
        local = ["--host", "127.0.0.1", "--webui-port", "0"]
        self._run("master", f"{deploy}.master.Master", *local, "--port", str(self._port))
        until(lambda: "I have been elected leader" in self._log("master"), "a master")
        memory = ["--memory", "2g", "--cores", str(self._slots), "--work-dir", str(self._folder / "work")]
        self._run("worker", f"{deploy}.worker.Worker", *local, *memory, self.master)
        until(lambda: "Successfully registered" in self._log("worker"), "a worker")
        return self

    def __exit__(self, *_: object) -> None:
        """Stop both."""
        for process in reversed(self._processes):
            process.terminate()
            process.wait(DEADLINE_S)

    def submit(self, jars: list[str]) -> list[str]:
        """The command that submits the job, as it is in the checkout, to this cluster."""
        return [
            *(str(HOME / "bin" / "spark-submit"), "--master", self.master),
            *("--jars", ",".join(jars), "--conf", f"spark.executor.extraClassPath={':'.join(jars)}"),
            *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"),
            *("--conf", f"spark.executor.extraJavaOptions={COMPILE_FAST}"),
            *("--driver-class-path", ":".join(jars), "--executor-memory", "1g", "--driver-memory", "1g"),
            str(CHECKOUT / "spark_app" / "main.py"),
        ]

    def _run(self, name: str, main: str, *arguments: str) -> None:
        command = [str(HOME / "bin" / "spark-class"), main, *arguments]
        with (self._folder / f"{name}.log").open("wb") as log:
            environment = os.environ | {
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_HOME": str(HOME),
                "SPARK_DAEMON_JAVA_OPTS": COMPILE_FAST,
            }
            self._processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    def _log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
