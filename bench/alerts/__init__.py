"""Alerts by Stateloop and by Flink's broadcast state: how late they are, and how long a changed rule takes."""
