"""Makes an application's topics, once: `stateloop topics`."""
