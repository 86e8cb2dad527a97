"""How figures are called and written where they are printed."""

from bench.harness.figures import Figures

HEADINGS = {
    "records_per_s": ("records/s", ",.0f"),
    "cpu_s": ("CPU s", ".1f"),
    "per_cpu_s": ("records/CPU s", ",.0f"),
    "us_per_record": ("CPU µs/record", ".1f"),
    "start_cpu_s": ("CPU s to start", ".1f"),
    "counts_per_record": ("counts/record", ".3f"),
    "calls_per_s": ("calls/s", ",.0f"),
    "calls_per_cpu_s": ("calls/CPU s", ",.0f"),
    "records_per_cpu_s": ("snapshots/CPU s", ",.0f"),
    "rss_mb": ("memory MB", ",.0f"),
    "repeated": ("repeated calls", ",.0f"),
    "p50_ms": ("p50 ms", ".1f"),
    "p95_ms": ("p95 ms", ".1f"),
    "p99_ms": ("p99 ms", ".1f"),
    "p999_ms": ("p99.9 ms", ".1f"),
    "max_ms": ("max ms", ".0f"),
    "evaluated_p50_ms": ("from the record evaluated p50 ms", ".1f"),
    "evaluated_p99_ms": ("from the record evaluated p99 ms", ".1f"),
    "first_ms": ("first alert ms", ",.0f"),
    "last_ms": ("last alert ms", ",.0f"),
    "slowest_ms": ("last alert of the slowest change ms", ",.0f"),
    "gap_ms": ("largest gap ms", ".0f"),
    "cores": ("cores", ".2f"),
    "gets_per_s": ("GET/s", ",.0f"),
    "gets_per_cpu_s": ("GET/CPU s", ",.0f"),
    "full_p99_ms": ("p99 ms", ".1f"),
    "over_2s": ("over 2 s", ",.0f"),
    "half_per_s": ("GET/s at half load", ",.0f"),
    "half_p99_ms": ("p99 ms at half load", ".1f"),
    "half_over_2s": ("over 2 s at half load", ",.0f"),
    "batch_keys_per_cpu_s": ("keys of batches/CPU s", ",.0f"),
    "page_keys_per_cpu_s": ("keys of pages/CPU s", ",.0f"),
    "pushed_per_cpu_s": ("pushed/CPU s", ",.0f"),
    "update_cores": ("cores for updates alone", ".2f"),
    "visible_p50_ms": ("visible p50 ms", ".1f"),
    "visible_p99_ms": ("visible p99 ms", ".1f"),
    "rebuild_s": ("rebuild s", ".1f"),
    "restart_s": ("restart s", ".1f"),
    "own_mb": ("memory but for files MB", ",.0f"),
    "disk_mb": ("disk MB", ",.0f"),
    "boundaries": ("batch ends in it", ".0f"),
    "late_p99_ms": ("load late p99 ms", ".1f"),
    "late_max_ms": ("load late max ms", ".0f"),
}
"""The printed figures, in this order; all figures are in the JSON lines."""
CONDITIONS = {"boundaries", "late_p99_ms", "late_max_ms"}
"""The figures of a run's conditions, which have no ratio."""


def cell(name: str, value: float) -> str:
    """A figure as it is printed."""
    return format(value, HEADINGS[name][1])


def line(figures: Figures) -> str:
    """All that are printed, in a line."""
    return ", ".join(f"{HEADINGS[name][0]} {cell(name, figures[name])}" for name in HEADINGS if name in figures)
