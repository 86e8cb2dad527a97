from hypothesis import strategies as st
from pyspark.sql import SparkSession

from stateloop.testing.reducers import check_reducer
from tests.spark_app.geometric_mean import GeometricMean


def test_sql_and_fold_agree(spark: SparkSession) -> None:
    check_reducer(spark, GeometricMean(), float | None, st.floats(1e-3, 1e3))
