"""The worker's peer in Python."""
