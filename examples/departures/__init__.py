"""Departures by airport and hour, and by carrier and day, counted from the events of the flights."""
