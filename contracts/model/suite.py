"""A suite: applications that run together, each with a state of its own, over the same topics of events."""

from contracts.errors import DeclarationError
from contracts.model.application import Application
from contracts.model.named_state import check_names
from contracts.model.raw import Raw
from contracts.model.reference import named_object
from contracts.model.topics import Topic
from contracts.types.declaration import Declaration


class Suite(Declaration):
    """Several applications that one job runs, with a query for each. Raises DeclarationError, with what to write.

    They may read one topic of events. The names of all their states differ, and so do the topics that they write.
    """

    def __init__(self, *applications: Application) -> None:
        if not applications:
            raise DeclarationError("Suite()", "has no application", "Write Suite(application, …)")
        self.applications = applications
        check_names(name for application in applications for name in application.state_names)
        _check_outputs(applications)
        _check_events(applications)
        _check_webhook_groups(applications)

    def select(self, name: str | None) -> tuple[Application, ...]:
        """Return all applications, or the one of this name. Raises DeclarationError."""
        selected = tuple(application for application in self.applications if name in (None, application.name))
        if not selected:
            known = ", ".join(application.name for application in self.applications)
            raise DeclarationError(f"--application {name}", "is not in the suite", f"Name one of these: {known}")
        return selected

    def catalogue(self) -> tuple[Topic, ...]:
        """Return all topics with their settings. A shared topic of events has the longest retention."""
        topics: dict[str, Topic] = {}
        for application in self.applications:
            for topic in application.catalogue():
                topics[topic.name] = topic.merged(topics.get(topic.name, topic))
        return tuple(topics.values())

    def raw_sources(self) -> tuple[tuple[Application, Raw], ...]:
        """Return each raw source once, with the first application that reads its events."""
        sources: dict[str, tuple[Application, Raw]] = {}
        for application in self.applications:
            for raw in application.raw:
                sources.setdefault(raw.topic, (application, raw))
        return tuple(sources.values())

    def group(self, application: Application, named: str) -> str:
        """Return the consumer group of one application's workers. Several applications do not share one group."""
        return named if len(self.applications) == 1 else f"{named}-{application.name}"


def load_suite(reference: str) -> Suite:
    """Return the suite that `package.module:name` names; an application is a suite of one.

    Raises DeclarationError when there is neither; an error in the application's own code is its own.
    """
    declared = named_object(reference)
    if isinstance(declared, Application):
        return Suite(declared)
    if not isinstance(declared, Suite):
        raise DeclarationError(repr(reference), "is no Application and no Suite", "Write package.module:name")
    return declared


def _check_outputs(applications: tuple[Application, ...]) -> None:
    """Refuse a topic that two applications write, or that one writes and another reads as events."""
    writers: dict[str, str] = {}
    for application in applications:
        for topic in application.outputs:
            if topic in writers:
                problem = f"{writers[topic]} and {application.name} both write the topic {topic!r}"
                raise DeclarationError(
                    "Suite", problem, f"Write Topics(prefix=…) in {application.name}, with a prefix of its own"
                )
            writers[topic] = application.name
    for application in applications:
        for topic in (application.topics.events, *(raw.topic for raw in application.raw)):
            if writer := writers.get(topic):
                problem = f"{application.name} reads the topic {topic!r} as events, and {writer} writes it"
                raise DeclarationError("Suite", problem, "Name the topic that devices send to")


def _check_events(applications: tuple[Application, ...]) -> None:
    """Refuse applications that read one topic of events, or of raw records, with different settings."""
    readers: dict[str, Application] = {}
    raw_readers: dict[str, Application] = {}
    for application in applications:
        for raw in application.raw:
            first_reader = raw_readers.setdefault(raw.topic, application)
            if first_reader.topics.events != application.topics.events:
                names = f"{first_reader.name} and {application.name}"
                problem = f"{names} decode the topic {raw.topic!r} to different topics of events"
                raise DeclarationError("Suite", problem, "Write the same Topics(events=…) in both")
        events = application.topics.events
        first = readers.setdefault(events, application)
        if application.raw != first.raw:
            problem = f"{first.name} and {application.name} read the topic {events!r}, and differ in its raw sources"
            raise DeclarationError("Suite", problem, "Write the same raw=(…) in both")
        for name in ("replay", "partitions"):
            wanted, other = getattr(application.topics, name), getattr(first.topics, name)
            if wanted != other:
                problem = f"{first.name} declares {name}={other} for the topic {events!r}, {application.name} {wanted}"
                raise DeclarationError("Suite", problem, f"Write the same Topics({name}=…) in both")


def _check_webhook_groups(applications: tuple[Application, ...]) -> None:
    """Refuse webhooks of two applications with one consumer group: only one of them would be called."""
    members: dict[str, str] = {}
    for application in applications:
        for alerts in application.alerts:
            group, member = application.webhook_group(alerts), f"{alerts.name!r} of {application.name}"
            if alerts.webhook and (other := members.setdefault(group, member)) != member:
                problem = f"the webhooks of {other} and of {member} have one consumer group, {group!r}"
                raise DeclarationError("Suite", problem, "Choose another name for one of these alerts")
