"""The alarm about failures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.runtime.worker.alarm import Alarm


@given(of=st.integers(1, 8), first=st.integers(1, 10), failures=st.lists(st.booleans(), max_size=40))
def test_it_sounds_for_the_last_ones_only(of: int, first: int, failures: list[bool]) -> None:
    alarm = Alarm(of, 0.75, first)
    for number, failed in enumerate(failures, 1):
        last = failures[max(0, number - of) : number]
        nothing_works = all(failures[:number]) and number >= first
        too_many = len(last) == of and sum(last) >= 0.75 * of
        assert alarm.note(failed=failed) == (failed and (too_many or nothing_works))
        assert alarm.seen == len(last)


@given(count=st.integers(1, 5), failures=st.lists(st.booleans(), max_size=30))
def test_failures_in_a_row_are_those_since_the_last_success(count: int, failures: list[bool]) -> None:
    alarm, in_a_row = Alarm.in_a_row(count), 0
    for failed in failures:
        in_a_row = in_a_row + 1 if failed else 0
        assert alarm.note(failed=failed) == (in_a_row >= count)


@given(count=st.integers(1, 4), results=st.lists(st.none() | st.sampled_from("abcdef"), max_size=40))
def test_failures_of_one_subject_count_once_until_something_succeeds(count: int, results: list[str | None]) -> None:
    alarm, failed = Alarm.in_a_row(count), set[str]()
    for subject in results:
        if subject is None:
            failed.clear()
            assert not alarm.note(failed=False)
            continue
        is_new = subject not in failed
        failed.add(subject)
        assert alarm.note(failed=True, subject=subject) == (is_new and len(failed) >= count)
        if len(failed) >= count:
            return
