"""Waits until a flight has landed."""

from pydantic import BaseModel

from stateloop.client import Client, Expired, Found, NeverSeen


class FlightState(BaseModel):
    status: str | None = None
    delay: int | None = None


class Flight(BaseModel):
    state: FlightState


async def wait_for_landing(url: str, key: str) -> str:
    async with Client(url) as client:
        match await client.get("flights", key, model=Flight):
            case NeverSeen():
                return f"{key} is unknown"
            case Expired():
                return f"{key} has expired"
            case Found(value=flight, age=age):
                print(f"{key} is {flight.state.status}, as of {age} ago")
        async for update in client.watch("flights", key, model=Flight):
            if isinstance(update, Found) and update.value.state.status == "landed":
                return f"{key} has landed, {update.value.state.delay} min late"
    return "the watch has ended"
