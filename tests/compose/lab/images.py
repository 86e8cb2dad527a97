"""The images that the stack starts from: pulled where a registry can be reached, else stand-ins made from packages."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from services.tools.broker.jars import ivy_jar
from tests.compose.lab.packages import install

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.compose.lab.commands import Commands

CHECKOUT = Path(__file__).parents[3]
BROKER = Path(__file__).with_name("broker")
PROMETHEUS = Path(__file__).with_name("prometheus")
STORES = {"redis": Path(__file__).with_name("redis"), "postgres": Path(__file__).with_name("postgresql")}
JARS = CHECKOUT / ".stateloop" / "jars" / "broker"
AUTHORITIES = Path("/usr/local/share/ca-certificates")
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
PULL_S = 300.0
NOT_IN_SLIM = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")


class Images:
    """Makes sure of the images by name; `stand_ins` has those that were made here."""

    def __init__(self, commands: Commands, folder: Path, report: Callable[[str], None], *, host_network: bool) -> None:
        self.stand_ins: list[str] = []
        self._commands = commands
        self._folder = folder
        self._report = report
        self._network = ("--network=host",) if host_network else ()

    def require_debian(self, tag: str) -> None:
        """Have debian:TAG, which our images and the broker's stand-in are built on."""
        if self._official(f"debian:{tag}"):
            return
        install(self._commands, ("mmdebstrap",))
        root = self._folder / "debian.tar"
        slim = [f"--dpkgopt=path-exclude={path}" for path in NOT_IN_SLIM]
        suite = tag.removesuffix("-slim")
        self._commands.run(
            "mmdebstrap", "--variant=minbase", "--include=ca-certificates", *slim, *_trust(), suite, str(root)
        )
        settings = ["--change=CMD bash", f"--change=ENV PIP_CERT={BUNDLE} SSL_CERT_FILE={BUNDLE}"]
        self._commands.run("docker", "import", *settings, str(root), f"debian:{tag}")
        root.unlink()
        self._stands_in(f"debian:{tag}", "the packages of Debian, by mmdebstrap")

    def require_broker(self, tag: str, debian: str) -> None:
        """Have apache/kafka:TAG."""
        if self._official(f"apache/kafka:{tag}"):
            return
        install(self._commands, ("java",))
        self._commands.run(sys.executable, "-m", "services.tools.cli", "jars", cwd=CHECKOUT)
        context = shutil.copytree(BROKER, self._folder / "broker")
        shutil.copytree(JARS, context / "jars")
        ivy = ["java", "-jar", str(ivy_jar()), "-ivy", str(context / "ivy.xml"), "-confs", "tools"]
        self._commands.run(*ivy, "-retrieve", f"{context}/jars/[artifact]-[revision].[ext]")
        self._build(context, f"apache/kafka:{tag}", debian)
        self._stands_in(f"apache/kafka:{tag}", "the jars of ivy.xml, with the entrypoint of the official image")

    def require_prometheus(self, tag: str, debian: str) -> None:
        """Have prom/prometheus:TAG."""
        if self._official(f"prom/prometheus:{tag}"):
            return
        self._build(shutil.copytree(PROMETHEUS, self._folder / "prometheus"), f"prom/prometheus:{tag}", debian)
        self._stands_in(f"prom/prometheus:{tag}", "Debian's package of it, another version")

    def require_store(self, name: str, tag: str, debian: str) -> None:
        """Have redis:TAG or postgres:TAG."""
        if self._official(f"{name}:{tag}"):
            return
        self._build(shutil.copytree(STORES[name], self._folder / name), f"{name}:{tag}", debian)
        self._stands_in(f"{name}:{tag}", "Debian's package of it, another version")

    def has_grafana(self, tag: str) -> bool:
        """Whether there is grafana/grafana:TAG; nothing can stand in for it."""
        found = self._official(f"grafana/grafana:{tag}")
        if not found:
            self._report(f"grafana/grafana:{tag} cannot be had from a registry here. LEFT OUT")
        return found

    def _build(self, context: Path, image: str, debian: str) -> None:
        named = (f"--build-arg=DEBIAN_TAG={debian}", f"--tag={image}")
        self._commands.run("docker", "build", *self._network, *named, str(context))
        shutil.rmtree(context)

    def _official(self, image: str) -> bool:
        if self._commands.succeeds("docker", "image", "inspect", image):
            return True
        return self._commands.succeeds("docker", "pull", "--quiet", image, patience_s=PULL_S)

    def _stands_in(self, image: str, made_of: str) -> None:
        self.stand_ins.append(image)
        self._report(f"{image} cannot be had from a registry here. STAND-IN, made of {made_of}")


def _trust() -> list[str]:
    """Return the arguments that add this machine's certificate authorities to a base image, for the test only."""
    if not [*AUTHORITIES.glob("*.crt")]:
        return []
    copied = f'--customize-hook=cp {AUTHORITIES}/*.crt "$1{AUTHORITIES}/"'
    return [copied, '--customize-hook=chroot "$1" update-ca-certificates']
