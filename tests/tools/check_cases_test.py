import re

import support
from support import TOOLS, ToolTest


class CasesTable(ToolTest):
    tool = "check_cases.py"

    def setUp(self):
        super().setUp()
        kinds = re.findall(r'"([A-Z]+)": (\d+)', (TOOLS / self.tool).read_text())
        self.rows = {f"{kind}-{n:02}": "later" for kind, count in kinds
                     for n in range(1, int(count) + 1)}
        self.rows["MM-01"] = "`Cases.MM_01`"
        self.write("tests/kernels/cases_test.cpp", "TEST(Cases, MM_01) {}\n")

    def table(self, **changes):
        rows = {**self.rows, **{name.replace("_", "-"): to for name, to in changes.items()}}
        self.write("tests/cases/README.md", "".join(
            f"| {row} | what | {to} |\n" for row, to in rows.items() if to))

    def test_complete_table(self):
        self.table()
        self.assertIn(f"1 of {len(self.rows)} rows are tests", self.accepts())

    def test_missing_and_unknown_rows(self):
        self.table(MM_02="")
        self.rejects("MM-02: has no line")
        self.table(MM_99="later")
        self.rejects("MM-99: unknown")

    def test_named_test_must_exist_outside_comments(self):
        self.table(MM_02="`Cases.MM_02`")
        self.write("tests/kernels/more_test.cpp", "// TEST(Cases, MM_02) {}\n")
        self.rejects("no such test: Cases.MM_02")

    def test_a_case_that_nobody_maps(self):
        self.table()
        self.write("tests/kernels/more_test.cpp", "TEST_F(Cases, NUM_01) {}\n")
        self.rejects("Cases.NUM_01: is not in the table")


if __name__ == "__main__":
    support.main()
