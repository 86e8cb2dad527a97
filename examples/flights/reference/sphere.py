"""Geometry on a sphere, in degrees and statute miles."""

from math import asin, atan2, cos, degrees, radians, sin, sqrt
from typing import Final

RADIUS_MILES: Final = 3958.7613
"""The earth's mean radius (IUGG's R1, 6371.0088 km)."""


def distance(from_lat: float, from_lon: float, to_lat: float, to_lon: float) -> float:
    """The length of the great circle, by the haversine formula (Sinnott 1984), in miles."""
    lat1, lat2 = radians(from_lat), radians(to_lat)
    north, east = sin((lat2 - lat1) / 2), sin(radians(to_lon - from_lon) / 2)
    return 2 * RADIUS_MILES * asin(sqrt(north * north + cos(lat1) * cos(lat2) * east * east))


def bearing(from_lat: float, from_lon: float, to_lat: float, to_lon: float) -> float:
    """Return the initial bearing of the great circle, clockwise from north, from 0 to below 360."""
    lat1, lat2, east = radians(from_lat), radians(to_lat), radians(to_lon - from_lon)
    ahead = cos(lat1) * sin(lat2) - sin(lat1) * cos(lat2) * cos(east)
    return degrees(atan2(sin(east) * cos(lat2), ahead)) % 360


def headwind(bearing_deg: float, wind_mph: float, wind_deg: float) -> float:
    """The part of a wind, named by where it comes from, that blows against a bearing."""
    return wind_mph * cos(radians(wind_deg - bearing_deg))
