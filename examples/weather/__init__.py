"""Alerts when the temperature at an airport changes by more than a threshold between two readings."""
