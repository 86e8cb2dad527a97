"""Sends the events of the flights in the order of their times."""
