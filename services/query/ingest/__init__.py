"""From the topics into the stores, in one thread, and from there to whoever is told of changes."""
