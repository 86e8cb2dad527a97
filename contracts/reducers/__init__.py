"""All reducers: each has one Spark SQL expression and one plain Python fold, and the two agree."""

from contracts.reducers.base import Reducer
from contracts.reducers.coverage import Coverage
from contracts.reducers.enriched import Enriched
from contracts.reducers.frequencies import TopK, ValueCount
from contracts.reducers.numbers import Count, Histogram, Max, Mean, Min, Quantiles, Sum, Variance
from contracts.reducers.series import Series
from contracts.reducers.sets import Bitmap, Distinct, DistinctApprox
from contracts.reducers.times import Collect, Earliest, Latest, Rate, Recent

__all__ = [
    "Bitmap",
    "Collect",
    "Count",
    "Coverage",
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
    "Series",
    "Sum",
    "TopK",
    "ValueCount",
    "Variance",
]
