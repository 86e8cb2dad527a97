"""The device-state job of the yardstick, which Flink, Kafka Streams and a bare Spark job do as well."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel

from contracts import Api, Application, Count, Enriched, Event, Latest, Max, Mean, State, Topics, enrichment


class DeviceReading(Event):
    """An event of the yardstick."""

    attrs: dict[str, str] | None = None
    temperature: float | None = None


class Geo(BaseModel):
    """The result of `geo`."""

    place: str


class CellWeather(BaseModel):
    """The result of `weather`."""

    sky: str


class Device(State, lifetime=timedelta(hours=1)):
    """The state of the yardstick."""

    events: Annotated[int, Count()]
    last_ts: Annotated[datetime | None, Max(of="ts")]
    t_max: Annotated[float | None, Max(of="temperature")]
    t_avg: Annotated[float | None, Mean(of="temperature")]
    t_last: Annotated[float | None, Latest(of="temperature")]
    geo: Annotated[Geo | None, Enriched()]
    weather: Annotated[CellWeather | None, Enriched()]


@enrichment(api="reference")
async def geo(api: Api, t_max: float) -> Geo:
    """The position of the device."""
    return await api.get("/geo", Geo, t=t_max)


@enrichment(api="reference")
async def weather(api: Api, geo: Geo) -> CellWeather:
    """The weather there."""
    return await api.get("/weather/{place}", CellWeather, place=geo.place)


stamped_by_senders = Topics(replay=True)
"""As the yardstick's harness makes them."""
ahead = timedelta(minutes=15)
"""The harness sends a tenth of a millisecond of its devices' time with each event, however fast it sends."""
app = Application(
    name="yardstick",
    event=DeviceReading,
    state=Device,
    enrichments=(geo, weather),
    topics=stamped_by_senders,
    skew=ahead,
    deduplicate=False,
)
exact = Application(
    name="yardstick",
    event=DeviceReading,
    state=Device,
    enrichments=(geo, weather),
    topics=stamped_by_senders,
    skew=ahead,
)
"""The same with each event counted once, which none of the peers does."""
