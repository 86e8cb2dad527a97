"""Devices that report their temperature, and the limits of the sites where they are."""
