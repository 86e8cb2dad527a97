"""Evaluates alerts, and keeps what they need of a partition: the present states, the rules, the last alerts."""
