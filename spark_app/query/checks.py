"""Checks of decoded records: keys, and times against the clock, by the rules of contracts/records/decode.py."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.model.windows import last_window_start_sql
from contracts.records.record import Reason
from contracts.records.refusal import (
    JOB,
    NO_WINDOW,
    STAMP,
    ahead_sql,
    large_key_sql,
    late_sql,
    late_windows_sql,
    wrong_key_sql,
)
from contracts.types.columns import text
from contracts.types.key import LARGEST_KEY, composite_key_sql
from contracts.types.quantize import MICROSECOND
from spark_app.query.columns import CLOCK, DEVICE_ID, FIRST_SEEN, REASON, field_column
from spark_app.query.decode import refused

Case = tuple[str, str]
"""The SQL of a condition, and of the reason of refusal where it is true."""
TS, START = field_column("ts"), field_column(FIRST_SEEN)
WHOSE = f"CASE WHEN {CLOCK} < timestamp THEN {text(JOB)} ELSE {text(STAMP)} END"


def event_key(application: Application) -> str:
    """The SQL of the key of a decoded event."""
    return composite_key_sql(*map(field_column, application.state.keys))


def event_cases(application: Application) -> list[Case]:
    """The checks of an event."""
    key, name, cases = event_key(application), application.key_name, []
    if len(application.state.keys) > 1:
        is_large = f"octet_length({key}) > {LARGEST_KEY}"
        cases.append((is_large, refused(Reason.INVALID_FIELD, large_key_sql(name, key))))
    if application.state.is_windowed:
        return [*cases, _ahead(application, "ts"), _late_windows(application)]
    return [
        *cases,
        _wrong_key(name, key),
        _ahead(application, FIRST_SEEN),
        _ahead(application, "ts"),
        _late(application),
    ]


def feedback_cases(application: Application) -> list[Case]:
    """The checks of an answer."""
    cases = [_wrong_key(DEVICE_ID, field_column(DEVICE_ID)), _ahead(application, FIRST_SEEN), _late(application)]
    if application.state.is_windowed:
        is_start = f"unix_micros({START}) = {last_window_start_sql(application.state, START)}"
        cases.insert(0, (f"NOT {is_start}", refused(Reason.INVALID_FIELD, text(NO_WINDOW))))
    return cases


def checked(cases: list[Case]) -> Column:
    """The reason of refusal of a decoded record: of decoding, or else of the first of these cases that is true."""
    whens = ((f"{REASON} IS NOT NULL", REASON), *cases)
    return F.expr(f"CASE {' '.join(f'WHEN {condition} THEN {reason}' for condition, reason in whens)} END")


def is_over(application: Application, start: str) -> str:
    """The SQL of whether the window that starts at these microseconds is over, and its grace."""
    # As numbers: an interval is added to a time by the calendar.
    return f"unix_micros({CLOCK}) > {start} + {application.kept_for // MICROSECOND}L"


def _wrong_key(name: str, key: str) -> Case:
    return f"NOT key <=> CAST({key} AS BINARY)", refused(Reason.WRONG_KEY, wrong_key_sql(name, "key", key))


def _ahead(application: Application, name: str) -> Case:
    time, skew = field_column(name), application.skew
    is_ahead = f"unix_micros({time}) > unix_micros({CLOCK}) + {skew // MICROSECOND}L"
    return is_ahead, refused(Reason.INCREDIBLE_TIME, ahead_sql(name, time, CLOCK, WHOSE, skew))


def _late(application: Application) -> Case:
    detail = late_sql(START, CLOCK, WHOSE, application.kept_for)
    return is_over(application, f"unix_micros({START})"), refused(Reason.LATE, detail)


def _late_windows(application: Application) -> Case:
    detail = late_windows_sql(TS, CLOCK, WHOSE, application.state.grace)
    return is_over(application, last_window_start_sql(application.state, TS)), refused(Reason.LATE, detail)
