"""The command `stateloop`: one command for all parts, and a doctor that checks a set-up.

Each subcommand runs the module of its part, so `stateloop worker` and `python -m services.enrichment` are the same.
"""
