"""What strace prints must be read right, or the budget means nothing."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import cost  # noqa: E402

TABLE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.060000           6     10003           write
 39.00    0.039000           3     10020        12 recvfrom
  1.00    0.001000          10        10           mmap
------ ----------- ----------- --------- --------- ----------------
100.00    0.100000           4     20033        12 total
"""


class Cost(unittest.TestCase):
    def test_the_table_is_read_with_and_without_errors(self):
        self.assertEqual(cost.parse(TABLE), {"write": 10003, "recvfrom": 10020, "mmap": 10})

    def test_starting_up_does_not_count(self):
        each = cost.per_exchange(cost.parse(TABLE), {"write": 3, "recvfrom": 20, "mmap": 10}, 10_000)
        self.assertEqual(each, {"write": 1.0, "recvfrom": 1.0})

    def test_a_call_that_only_happens_in_exchanges_counts(self):
        self.assertEqual(cost.per_exchange({"poll": 500}, {}, 1000), {"poll": 0.5})


if __name__ == "__main__":
    unittest.main()
