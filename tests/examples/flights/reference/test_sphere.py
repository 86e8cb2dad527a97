from math import isclose

from hypothesis import given
from hypothesis import strategies as st

from examples.flights.reference.sphere import RADIUS_MILES, bearing, distance, headwind

LAT = st.floats(-89, 89)
LON = st.floats(-180, 180)


def test_a_quarter_of_the_equator() -> None:
    assert isclose(distance(0, 0, 0, 90), RADIUS_MILES * 1.5707963267948966)
    assert bearing(0, 0, 0, 90) == 90
    assert bearing(0, 0, 90, 0) == 0


@given(LAT, LON, LAT, LON)
def test_a_way_is_as_long_as_the_way_back(lat1: float, lon1: float, lat2: float, lon2: float) -> None:
    there, back = distance(lat1, lon1, lat2, lon2), distance(lat2, lon2, lat1, lon1)
    assert isclose(there, back, rel_tol=1e-9, abs_tol=1e-6)
    assert 0 <= bearing(lat1, lon1, lat2, lon2) <= 360


def test_wind_from_ahead_is_against_and_from_behind_with() -> None:
    assert headwind(90, 10, 90) == 10
    assert headwind(90, 10, 270) == -10
