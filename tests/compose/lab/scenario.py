"""The checks of the stack of compose.yaml, in their order."""

from __future__ import annotations

from tests.compose.lab.checks import Checks
from tests.compose.lab.errors import StackError
from tests.compose.lab.hardening import require_hardened
from tests.compose.lab.image_layers import is_of_code, new_instructions, read_layers

STAY = ("kafka", "job", "enrichment", "reference", "derive", "query")
CRASHES = (
    ("replay", 300),
    ("job", 900),
    ("derive", 1_500),
    ("enrichment", 2_000),
    ("query", 2_400),
    ("reference", 2_800),
    ("kafka", 4_000),
)
"""Each container, and after how many snapshots it crashes; there are some 8,400. The replay must not have ended."""
DOWN_AFTER = 5_500


class Scenario(Checks):
    """The checks. Each raises StackError, or CommandFailedError, when it does not hold."""

    def run(self) -> None:
        """All of it."""
        with self._steps.step("docker compose up"):
            self._stack.up()
        self._court.crash_each(CRASHES)
        self.down_and_up()
        with self._steps.step("every flight of the day is as in the tables"):
            self._court.agree()
            for line in self._stack.usage():
                self._steps.report(line)
        self.killed_by_docker()
        self.code_change()
        with self._steps.step("docker compose down --volumes leaves nothing"):
            self._stack.remove()

    def down_and_up(self) -> None:
        """The stack goes down in the middle of the day, and goes on where it was."""
        with self._steps.step(f"docker compose down after {DOWN_AFTER} snapshots, and up: it goes on where it was"):
            self._court.seen(DOWN_AFTER)
            before = self._stack.batches()
            self._stack.compose("down")
            self._stack.up()
            self._stack.wait(lambda: self._stack.batches() > before, "the job commits the batch after its last")

    def killed_by_docker(self) -> None:
        """Kill containers by docker kill, which counts as stopped by hand: only `up` starts them again."""
        with self._steps.step("docker kill of all containers, and docker compose up"):
            self._stack.commands.run("docker", "kill", *(self._stack.container(service)["Id"] for service in STAY))
            left = [service for service in STAY if self._stack.container(service)["State"]["Running"]]
            self._steps.report(f"the engine has restarted {', '.join(left) or 'none of them'}")
            self._stack.up()
            self._stack.await_well(*STAY)
            require_hardened(self._stack, set(STAY) - {"kafka"})
        with self._steps.step("every flight is still as in the tables"):
            self._court.agree()

    def code_change(self) -> None:
        """A change of code that is in both images makes only the layers of the code anew, and no state is lost."""
        source = self._stack.checkout / "contracts" / "__init__.py"
        source.write_text(source.read_text(encoding="utf-8") + "\n# A change.\n", encoding="utf-8")
        old = self._stack.container("job")["Image"]
        images = [self._stack.container(service)["Config"]["Image"] for service in ("job", "query")]
        before = {image: read_layers(self._stack.commands, image) for image in images}
        with self._steps.step("docker compose build after a change of code: only the layers of the code are new"):
            self._stack.compose("build")
            for image, layers in before.items():
                made = new_instructions(layers, read_layers(self._stack.commands, image))
                others = [one for one in made if not is_of_code(one)]
                if others or not made:
                    raise StackError(f"the build of {image} has repeated {'; '.join(others) or 'nothing'}")
                self._steps.report(f"{image}: {len(made)} of {len(layers.digests)} layers are new")
        with self._steps.step("docker compose up with the new images: every flight is still as in the tables"):
            self._stack.up()
            if self._stack.container("job")["Image"] == old:
                raise StackError("the job still runs the old image")
            self._stack.await_well(*STAY)
            self._court.agree()
