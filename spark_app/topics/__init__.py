"""The application's topics on the broker: their identities, their offsets, and the timestamps of their records."""
