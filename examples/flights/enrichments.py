"""The enrichments of a flight, from the API named `reference`."""

from datetime import UTC, datetime

from examples.flights.results import Aircraft, Airline, Airport, Performance, Route, Weather
from stateloop import Api, enrichment


@enrichment(api="reference")
async def airline(api: Api, carrier: str) -> Airline:
    """The carrier's name."""
    return await api.get("/airlines/{carrier}", Airline, carrier=carrier)


@enrichment(api="reference")
async def origin_airport(api: Api, origin: str) -> Airport:
    """The airport of departure."""
    return await api.get("/airports/{faa}", Airport, faa=origin)


@enrichment(api="reference")
async def dest_airport(api: Api, dest: str) -> Airport:
    """The airport of arrival. Four airports are absent."""
    return await api.get("/airports/{faa}", Airport, faa=dest)


@enrichment(api="reference")
async def aircraft(api: Api, tailnum: str) -> Aircraft:
    """The plane. On 15 % of the flights it is an unknown one."""
    return await api.get("/aircraft/{tailnum}", Aircraft, tailnum=tailnum)


@enrichment(api="reference")
async def weather(api: Api, origin: str, departed_at: datetime) -> Weather:
    """The weather at the origin in the hour of the actual departure: from two events."""
    hour = departed_at.astimezone(UTC).strftime("%Y-%m-%dT%HZ")
    return await api.get("/weather/{faa}", Weather, faa=origin, hour=hour)


@enrichment(api="reference")
async def route(api: Api, origin_airport: Airport, dest_airport: Airport) -> Route:
    """The great circle: from what two other enrichments found."""
    return await api.get(
        "/route",
        Route,
        from_lat=origin_airport.lat,
        from_lon=origin_airport.lon,
        to_lat=dest_airport.lat,
        to_lon=dest_airport.lon,
    )


@enrichment(api="reference")
async def performance(  # noqa: PLR0913  # it draws on two events and three enrichments: that is its point
    api: Api,
    *,
    departed_at: datetime,
    landed_at: datetime,
    air_time: int,
    route: Route,
    aircraft: Aircraft,
    weather: Weather | None,
) -> Performance:
    """The performance of a flight. It needs aircraft and route; without weather the headwind is missing."""
    values: dict[str, float | None] = {
        "block_minutes": (landed_at - departed_at).total_seconds() / 60,
        "air_minutes": air_time,
        "distance_miles": route.distance_miles,
        "bearing_deg": route.bearing_deg,
        "seats": aircraft.seats,
        "cruise_mph": aircraft.cruise_mph,
        "wind_mph": weather.wind_mph if weather else None,
        "wind_deg": weather.wind_deg if weather else None,
    }
    parameters = {name: value for name, value in values.items() if value is not None}
    return await api.get("/performance", Performance, **parameters)
