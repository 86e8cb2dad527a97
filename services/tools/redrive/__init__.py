"""Sends dead letters into the loop again, or to their webhook, after their cause is fixed: `stateloop redrive`."""
