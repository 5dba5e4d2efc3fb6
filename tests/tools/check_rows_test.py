import json

import support
from support import ToolTest

ROW = {"kernel": "gemm", "shape": "m=64", "time_us": 10.0, "limit_us": 5.0, "fraction": 0.5,
       "verified": True, "max_err_over_bound": 0.25, "peer": "openblas", "ratio": 1.0,
       "ci95": [0.9, 1.1]}


class CheckRows(ToolTest):
    tool = "check_rows.py"

    def rows(self, *rows):
        self.write("bench/results/spine/run-1.json",
                   "".join(json.dumps(row) + "\n" for row in rows))

    def test_possible_rows_pass(self):
        self.rows(ROW, ROW | {"limit_us": 9.5, "fraction": 0.95},
                  {"item": "no row of times", "ok": True})
        self.assertIn("2 rows; largest fraction of the limit: 0.950", self.accepts())

    def test_nothing_is_faster_than_the_limit(self):
        self.rows(ROW, ROW | {"limit_us": 10.1, "fraction": 1.01})
        self.rejects("run-1.json:2: gemm m=64: fraction is 1.010: 10 us where 10.1 us are the "
                     "least")

    def test_fractions_are_what_they_say(self):
        self.rows(ROW | {"limit_us": 6.0})
        self.rejects("fraction is 0.500, limit over time 0.600")

    def test_rows_of_times_have_a_time_a_limit_and_a_fraction(self):
        for key in ("time_us", "limit_us", "fraction", "verified"):
            self.rows(ROW, {k: v for k, v in ROW.items() if k != key})
            self.rejects(f"run-1.json:2: gemm m=64: has no {key}")
        for key in ("time_us", "limit_us", "fraction"):
            self.rows(ROW | {key: 0})
            self.rejects(f"run-1.json:1: gemm m=64: {key} is 0")
        self.rows(ROW | {"limit_us": 0.0, "fraction": 0.0})
        self.rejects("run-1.json:1: gemm m=64: limit_us is 0")
        self.rows({"kernel": "gemm", "shape": "m=64"})
        self.rejects("run-1.json:1: gemm m=64: has no time_us")

    def test_other_impossible_rows(self):
        for change, said in (({"verified": False}, "was not verified"),
                             ({"max_err_over_bound": 1.5}, "its error is 1.5 times the bound"),
                             ({"ratio": 1.2}, "ratio 1.2 is outside of 0.9 .. 1.1")):
            self.rows(ROW | change)
            self.rejects(said)

    def test_peers_are_wanted_only_where_one_is_named(self):
        self.rows(ROW | {"peer": "", "ratio": 0, "ci95": [0, 0]})
        self.accepts()


if __name__ == "__main__":
    support.main()
