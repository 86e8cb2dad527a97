"""The live view: the loop in the terminal, from the query service's HTTP API."""
