"""Sends dead letters into the loop again, after their cause is removed: `stateloop redrive`."""
