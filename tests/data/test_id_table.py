"""The ids of units, remembered: whoever asks, and however many ask at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

from seqloom.data.ragged import Ragged
from seqloom.fields.id_table import UnitTable


def test_two_threads_that_meet_the_same_unit_for_the_first_time_leave_the_table_in_order():
    """One of them is still encoding it when the other one asks for it, and gets it if nobody keeps it waiting."""
    within, asked = threading.Event(), threading.Event()

    def encode(units):
        if not within.is_set():
            within.set()
            asked.wait(0.5)  # in vain, where the other one has to wait for this
        return Ragged.of([[ord(letter) for letter in unit] for unit in units])

    table = UnitTable(encode)

    def ids(*units):
        return [row.tolist() for row in table.encode([[unit] for unit in units])]

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ids, "ab")
        assert within.wait(60)
        second = ids("ab")
        asked.set()
        assert first.result() == second == [[97, 98]]
    assert ids("c", "ab", "d") == [[99], [97, 98], [100]]
