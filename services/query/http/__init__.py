"""The HTTP API: what is asked, who may, and how answers look."""
