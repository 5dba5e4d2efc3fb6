"""The compile-time traps of traps/traps.cpp, with g++ and clang++: traps_test.py ROOT."""
import re
import subprocess
import sys
import unittest

ROOT = sys.argv.pop()
SOURCE = "tests/lang/traps/traps.cpp"
# All errors, without the lines of the source: those hold the texts that are looked for.
COMPILERS = {"g++": ["-fmax-errors=0", "-fno-diagnostics-show-caret"],
             "clang++": ["-ferror-limit=0", "-fno-caret-diagnostics"]}
MARK = re.compile(r"// ([1-9]): (.*)$")
INCLUDED = re.compile(r"^(In file included| +) from " + re.escape(SOURCE) + r":\d+", re.M)
PLACE = re.compile(re.escape(SOURCE) + r":(\d+):")


def compile_with(compiler, traps):
    command = [compiler, "-std=c++20", "-fsyntax-only", *COMPILERS[compiler], "-I.",
               f"-DTRAPS={traps}", SOURCE]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


class Traps(unittest.TestCase):
    def marks(self, traps):
        with open(f"{ROOT}/{SOURCE}") as source:
            found = [(n, MARK.search(line)) for n, line in enumerate(source, 1)]
        return {n: m[2] for n, m in found if m and m[1] == str(traps)}

    def test_right_programs_compile(self):
        for compiler in COMPILERS:
            result = compile_with(compiler, 0)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_each_trap_is_explained_at_its_line(self):
        for compiler in COMPILERS:
            for traps in (1, 2, 3):
                marks = self.marks(traps)
                self.assertTrue(marks)
                result = compile_with(compiler, traps)
                self.assertNotEqual(result.returncode, 0)
                lines = {int(n) for n in PLACE.findall(INCLUDED.sub("", result.stderr))}
                self.assertEqual(lines, set(marks), result.stderr)
                for line, text in marks.items():
                    with self.subTest(compiler=compiler, line=line):
                        self.assertRegex(result.stderr, text)


if __name__ == "__main__":
    unittest.main()
