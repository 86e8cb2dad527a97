from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ENTRYPOINT = Path(__file__).parents[3] / "deploy" / "spark" / "entrypoint.sh"
EXECUTOR = {
    "SPARK_JAVA_OPT_0": "-Dspark.a=b c",
    "SPARK_JAVA_OPT_1": "-Dspark.d=e",
    "SPARK_EXECUTOR_MEMORY": "2g",
    "SPARK_DRIVER_URL": "spark://driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "16",
    "SPARK_APPLICATION_ID": "app",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.3",
    "SPARK_EXECUTOR_POD_NAME": "exec-3",
}


def started(folder: Path, environment: dict[str, str], *arguments: str) -> list[str]:
    """Run the entrypoint; return the arguments of the java that it starts."""
    java = folder / "java"
    java.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    java.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run([ENTRYPOINT, *arguments], env={"PATH": path} | environment, capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def test_an_executor_gets_what_spark_sets_in_variables(tmp_path: Path) -> None:
    found = started(tmp_path, EXECUTOR, "executor")
    assert found[:4] == ["-Dspark.a=b c", "-Dspark.d=e", "-Xms2g", "-Xmx2g"]
    backend = found.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend")
    named = dict(zip(found[backend + 1 :: 2], found[backend + 2 :: 2], strict=True))
    assert named == {
        "--driver-url": "spark://driver:7078",
        "--executor-id": "3",
        "--cores": "16",
        "--app-id": "app",
        "--hostname": "10.0.0.3",
        "--resourceProfileId": "0",
        "--podName": "exec-3",
    }


def test_an_executor_without_a_driver_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        started(tmp_path, {name: EXECUTOR[name] for name in EXECUTOR if name != "SPARK_DRIVER_URL"}, "executor")


def test_anything_else_is_a_command(tmp_path: Path) -> None:
    assert started(tmp_path, {}, "echo", "a b", "c") == ["a b c"]
