"""All reducers: each has one Spark SQL expression and one plain Python fold, and the two agree."""

from contracts.reducers.base import Reducer
from contracts.reducers.enriched import Enriched
from contracts.reducers.frequencies import TopK, ValueCount
from contracts.reducers.numbers import Count, Histogram, Max, Mean, Min, Quantiles, Sum, Variance
from contracts.reducers.sets import Bitmap, Distinct, DistinctApprox
from contracts.reducers.times import Collect, Earliest, Latest, Rate, Recent

__all__ = [
    "Bitmap",
    "Collect",
    "Count",
    "Distinct",
    "DistinctApprox",
    "Earliest",
    "Enriched",
    "Histogram",
    "Latest",
    "Max",
    "Mean",
    "Min",
    "Quantiles",
    "Rate",
    "Recent",
    "Reducer",
    "Sum",
    "TopK",
    "ValueCount",
    "Variance",
]
