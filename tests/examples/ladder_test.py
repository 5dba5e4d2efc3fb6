"""The ladder of examples is right on CPUs and in the emulator, and says what is wrong with words:
ladder_test.py LADDER."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMMAND = str(pathlib.Path(sys.argv.pop()).resolve())
NAMES = ["vector_add", "softmax", "transpose", "matmul", "attention", "histogram"]


class Ladder(unittest.TestCase):
    def run_it(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([COMMAND, *words], text=True, cwd=folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            files = {p.name: p.read_text() for p in pathlib.Path(folder).iterdir()}
        return done, files

    def expect_right(self, device):
        done, _ = self.run_it("--device", device)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        lines = done.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], NAMES)
        for line in lines:
            self.assertIn("right: at most", line)

    def test_right_on_the_cpu(self):
        self.expect_right("cpu:0")

    def test_right_in_the_emulator(self):
        self.expect_right("emu:0")

    def test_speed_is_printed(self):
        done, _ = self.run_it("06_histogram")
        self.assertRegex(done.stdout, r"^histogram +\d+\.\d+ ms, +\d+\.\d+ Gbytes a second")

    def test_source_of_ones_own(self):
        done, files = self.run_it("02_softmax", "--eject", "softmax.cpp")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(files), ["softmax.cpp", "softmax.h"])
        self.assertIn("It is yours", files["softmax.cpp"])

    def test_words(self):
        for words, said in [(["07_none"], "07_none not in"),
                            (["--eject", "x.cpp"], "name one, as in 02_softmax"),
                            (["--device", "gpu"], "unknown device 'gpu'")]:
            done, _ = self.run_it(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)


unittest.main(argv=sys.argv[:1])
