"""Waits until a flight has landed."""

from pydantic import BaseModel

from services.client import Client, Expired, Found, NeverSeen


class Course(BaseModel):
    status: str | None = None
    delay: int | None = None


class Flight(BaseModel):
    state: Course


async def landing(url: str, flight: str) -> str:
    async with Client(url) as states:
        match await states.get("flights", flight, model=Flight):
            case NeverSeen():
                return f"nobody has heard of {flight}"
            case Expired():
                return f"{flight} was here long ago"
            case Found(value=known, age=age):
                print(f"{flight} is {known.state.status}, as of {age} ago")
        async for told in states.watch("flights", flight, model=Flight):
            if isinstance(told, Found) and told.value.state.status == "landed":
                return f"{flight} has landed, {told.value.state.delay} min late"
    return "the watch has ended"
