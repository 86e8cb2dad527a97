"""The calls of an API: from a request to its outcome, by the API's declared policy."""
