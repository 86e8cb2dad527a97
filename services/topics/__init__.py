"""Makes an application's topics, once: `python -m services.topics`."""
