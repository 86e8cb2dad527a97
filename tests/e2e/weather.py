"""The weather of `examples.weather`, with topics that no other test has."""

import os

from examples.weather.application import weather

app = weather(os.environ.get("WINDOWS_PREFIX", ""))
