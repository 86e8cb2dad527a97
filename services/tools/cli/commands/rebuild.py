"""`stateloop rebuild`."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from services.tools.cli.commands.parameters import FLAT, ApplicationName


@dataclass(frozen=True, kw_only=True)
class RebuildOptions:
    """The options of a rebuild."""

    dry_run: Annotated[bool, Parameter(help="only report what would be done")] = False
    accept_missing: Annotated[
        bool, Parameter(help="build also from topics that lack records, and leave out the windows that lack them")
    ] = False
    rollback: Annotated[bool, Parameter(help="go back to the generation that was active before")] = False
    partitions: Annotated[int | None, Parameter(metavar="N", help="add partitions to the topics, up to N")] = None
    enrichment_group: Annotated[
        str | None, Parameter(metavar="NAME", help="with --partitions: STATELOOP_GROUP of the enrichment workers")
    ] = None
    derive_group: Annotated[
        str | None, Parameter(metavar="NAME", help="with --partitions: STATELOOP_GROUP of the derive workers")
    ] = None
    watch: Annotated[bool, Parameter(help="wait for the next job, and print how long readers had no fresh state")] = (
        False
    )
    application: ApplicationName = None


def rebuild(*, options: Annotated[RebuildOptions, FLAT] = RebuildOptions()) -> int:
    """Build the state of STATELOOP_CHECKPOINT anew from the topics; the running job goes on meanwhile.

    It is for a changed application, another STATELOOP_STATE_PARTITIONS, or a
    lost checkpoint.
    """
    from services.tools.cli.rebuild import rebuild as run

    return run(options)
