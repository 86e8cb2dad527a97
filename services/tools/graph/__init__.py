"""Shows the graph of an application's enrichments."""
