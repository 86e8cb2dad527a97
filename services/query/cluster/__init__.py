"""Which instance answers for which partition, and how a question gets to it."""
