"""The decision on one key: which principal may read it, what the store has, and the answer or problem that results.

`StateReader` is the interface: it reads one key or many of one state and returns entries or problems with the role of
this instance. `Authenticator` returns the principal of a token. Nothing here depends on HTTP.
"""

from services.query.lookup.authentication import Authenticator, Principal
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.state_reader import LookupResult, StateReader, StateReaders

__all__ = ["Authenticator", "LookupResult", "Principal", "Problem", "ProblemError", "StateReader", "StateReaders"]
