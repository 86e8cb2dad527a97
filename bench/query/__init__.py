"""The query service at work, beside Redis that is fed by the same topic."""
