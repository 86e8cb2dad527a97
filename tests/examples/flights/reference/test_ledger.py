from examples.flights.reference.ledger import OTHERS, Ledger


def test_calls_of_a_path_are_numbered() -> None:
    ledger = Ledger()
    assert [ledger.ask("/a"), ledger.ask("/b"), ledger.ask("/a")] == [1, 1, 2]


def test_beyond_the_largest_number_of_paths_new_ones_are_counted_together() -> None:
    ledger = Ledger(largest=2)
    for path in ("/a", "/b", "/c", "/d", "/a"):
        ledger.ask(path)
        ledger.answer(path, 200)
    assert ledger.report() == {
        "calls": 5,
        "by_path": {"/a": 2, "/b": 1, OTHERS: 2},
        "by_status": {200: 5},
        "answers": {"/a": {200: 2}, "/b": {200: 1}, OTHERS: {200: 2}},
    }
