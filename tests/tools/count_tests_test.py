import subprocess
import sys

import support
from support import TOOLS, ToolTest


class Count(ToolTest):
    def count(self, tests, reports=(), status=0):
        self.write("ctest.xml", "<testsuite>" + "".join(
            f'<testcase name="{name}" status="{state}"/>' for name, state in tests) +
            "</testsuite>")
        for name, cases in dict(reports).items():
            self.write(f"reports/{name}.xml", "<testsuites><testsuite>" + cases +
                       "</testsuite></testsuites>")
        return self.run_count(status)

    def run_count(self, status):
        command = [sys.executable, TOOLS / "count_tests.py", self.root, str(status)]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    GOOD = '<testcase name="a" result="completed"/>'
    BAD = '<testcase name="b" result="completed"><failure message=""/></testcase>'
    SKIPPED = '<testcase name="c" result="skipped"><skipped message=""/></testcase>'

    def test_programs_without_a_report(self):
        self.assertEqual(self.count([("a", "run"), ("b", "fail")], status=8), "1 1")

    def test_cases_are_counted(self):
        self.assertEqual(self.count([("ir", "run")], {"ir": self.GOOD * 3 + self.SKIPPED}), "3 0")
        self.assertEqual(self.count([("ir", "fail")], {"ir": self.GOOD * 3 + self.BAD}, 8), "3 1")

    def test_a_crash_after_good_cases_is_a_failure(self):
        self.assertEqual(self.count([("ir", "fail")], {"ir": self.GOOD * 3}, 8), "3 1")

    def test_no_tests_at_all_is_a_failure(self):
        self.assertEqual(self.count([], status=8), "0 1")
        (self.root / "ctest.xml").unlink()
        self.assertEqual(self.run_count(1), "0 1")


if __name__ == "__main__":
    support.main()
