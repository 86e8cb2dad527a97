"""Creates an application's topics: `stateloop topics`."""
