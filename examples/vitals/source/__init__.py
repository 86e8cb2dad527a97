"""Sends the chunks of the monitors as they come into being."""
