"""Starts the whole loop on one machine, keeps it running, and stops it without leaving anything behind."""
