"""Declarations: what the author of an application writes, checked when it is made."""
