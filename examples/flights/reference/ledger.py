"""The ledger of calls: the number of calls of each path, and the statuses of their answers."""

from collections import Counter, defaultdict

OTHERS = "(others)"


class Ledger:
    """Counts calls by path, with the query. Beyond the largest number of paths, new ones are counted together."""

    def __init__(self, largest: int = 100_000) -> None:
        self._largest = largest
        self._calls: Counter[str] = Counter()
        self._answered: defaultdict[str, Counter[int]] = defaultdict(Counter)

    def ask(self, path: str) -> int:
        """Count a call, and return its number among the calls of this path: the first is 1."""
        known = path if path in self._calls or len(self._calls) < self._largest else OTHERS
        self._calls[known] += 1
        return self._calls[known]

    def answer(self, path: str, status: int) -> None:
        """Count the answer to a call."""
        self._answered[path if path in self._calls else OTHERS][status] += 1

    def clear(self) -> None:
        """Begin anew."""
        self._calls.clear()
        self._answered.clear()

    def report(self) -> dict[str, object]:
        """The number of calls, the calls by path, and the answers by path and status."""
        return {
            "calls": self._calls.total(),
            "by_path": dict(self._calls),
            "by_status": dict(sum(self._answered.values(), Counter())),
            "answers": {path: dict(counts) for path, counts in self._answered.items()},
        }
