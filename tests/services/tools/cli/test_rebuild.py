from __future__ import annotations

from unittest.mock import Mock, call

from services.tools.cli.rebuild import ApplicationRebuild, switch_all


def test_a_shared_topic_gets_its_partitions_with_the_last_application() -> None:
    """The query service reads the next number of partitions from it, also for those that are not rewritten yet."""
    layouts = [{"events"}, {"feedback"}, {"events"}, set[str]()]
    rebuilds = [Mock(ApplicationRebuild, layout_topics=found) for found in layouts]
    switch_all(rebuilds)
    left = [{"events", "feedback"}, {"events"}, set(), set()]
    assert [one.switch.mock_calls for one in rebuilds] == [[call(topics)] for topics in left]
