"""Sends dead letters into the loop again, or to their webhook, after their cause is removed: `stateloop redrive`."""
