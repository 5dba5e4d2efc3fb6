import json
import shutil
import subprocess
import sys

import support
from support import ROOT, TOOLS, ToolTest

TIMED = {"suite": "memory", "kernel": "softmax", "shape": "m=4096,n=4096", "dtype": "bf16",
         "launch": "graph", "peer": "eager", "time_us": 20.0, "peer_us": 30.0, "ratio": 1.5,
         "bytes": 3e8, "copy_us": 19.0, "ceiling_fraction": 0.95, "verified": True}
COMMAND = """#!/bin/sh
# As the command: lists kernels, and checks them.
if [ "$1" = kernels ]; then
  printf 'gelu    one\\nsoftmax two\\nwrong three\\n\\nNAME describes one\\n'; exit 0
fi
echo "$2" >>"$(dirname "$0")/checked"
case $2 in
  wrong) echo 'element 3 is off'; exit 1;;
  broken) echo 'no driver'; exit 3;;
  slow) sleep 20;;
esac
echo "$2: right"
"""
STAND_IN = """#!/usr/bin/env python3
# As bench/gpu/run: adds the row in the file `row`, and gives the GPU up the first time.
import pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
row, out = pathlib.Path("ROOT/row"), pathlib.Path(given["--output"]) / (given["--suite"] + ".jsonl")
if not row.exists():
    sys.exit(0)
first = not out.read_text()
with out.open("a") as file:
    file.write(row.read_text())
sys.exit(5 if first else int(pathlib.Path("ROOT/end").read_text()))
"""


class GpuCheck(ToolTest):
    def setUp(self):
        super().setUp()
        self.write("tools/gpu-check", (TOOLS / "gpu-check").read_text())
        shutil.copytree(ROOT / "bench/gpu", self.root / "bench/gpu")
        self.write("bench/gpu/run", STAND_IN.replace("ROOT", str(self.root)))
        self.program("tilewright", COMMAND)
        self.write("build/carry/about.json", '{"commit": "abc"}')

    def program(self, name, text):
        self.write(f"build/carry/{name}", text)
        (self.root / f"build/carry/{name}").chmod(0o755)

    def kernels(self, *names):
        lines = "".join(f"{name} a kernel\\n" for name in names)
        self.program("tilewright", COMMAND.replace("gelu    one\\nsoftmax two\\nwrong three\\n",
                                                   lines))

    def check(self, *arguments, suite="correctness", code=0):
        """Output of the tool, which must leave with `code`."""
        done = subprocess.run([sys.executable, self.root / "tools/gpu-check", "--suite", suite,
                               "--jobs", "1", "--output", self.root / "out", *arguments],
                              text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def checked(self):
        log = self.root / "build/carry/checked"
        return log.read_text().split() if log.exists() else []

    def rows(self, *rows, suite="memory"):
        self.write(f"out/{suite}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def test_items_are_listed_without_being_run(self):
        listed = self.check("--dry-run")
        self.assertIn("check softmax\n", listed)
        self.assertIn("softmax m=65537,n=32800 bf16\n", listed)
        self.assertEqual(self.checked(), [])
        self.rows(TIMED)
        listed = self.check("--dry-run", suite="memory")
        self.assertRegex(listed, r"(?m)^softmax m=4096,n=4096 bf16 +done$")
        self.assertRegex(listed, r"(?m)^softmax m=4096,n=4096 f32$")

    def test_a_wrong_result_is_told_and_leaves_with_1(self):
        self.kernels("gelu", "wrong")
        said = self.check("--seconds", "60", code=1)
        self.assertRegex(said, r"check gelu +right  gelu: right")
        self.assertRegex(said, r"check wrong +WRONG  element 3 is off")
        self.assertIn("2 of 2 items done, 0 left", said)
        self.assertIn("1 wrong or failed", said)

    def test_what_ends_otherwise_failed_and_is_tried_again(self):
        self.kernels("broken")
        said = self.check("--seconds", "60", code=1)
        self.assertRegex(said, r"check broken +FAILED: exit status 3: no driver")
        self.check("--seconds", "60", "--resume", code=1)
        self.assertEqual(self.checked(), ["broken", "broken"])

    def test_a_run_goes_on_where_another_ended(self):
        self.kernels("gelu", "slow")
        self.assertIn("1 of 2 items done, 1 left", self.check("--seconds", "3"))
        self.kernels("gelu", "softmax")
        self.assertIn("2 of 2 items done", self.check("--seconds", "60", "--resume"))
        self.assertEqual(self.checked(), ["gelu", "slow", "softmax"])
        self.check("--seconds", "60")
        self.assertEqual(self.checked()[3:], ["gelu", "softmax"])

    def test_rows_of_another_folder_count(self):
        self.kernels("gelu", "softmax")
        (self.root / "earlier").mkdir()
        self.write("earlier/correctness.jsonl",
                   '{"item": "check gelu", "ok": true, "says": "", "seconds": 1}\n{"item": "che')
        self.check("--seconds", "60", "--resume", str(self.root / "earlier"))
        self.assertEqual(self.checked(), ["softmax"])

    def test_a_gpu_that_was_given_up_gets_a_new_process(self):
        self.write("row", json.dumps(TIMED) + "\n")
        self.write("end", "6")
        said = self.check("--seconds", "60", suite="memory")
        self.assertEqual(len((self.root / "out/memory.jsonl").read_text().splitlines()), 2)
        self.assertIn("1 of 170 items done, 169 left", said)
        self.write("end", "1")
        said = self.check("--seconds", "60", suite="memory", code=1)
        self.assertRegex(said, r"all +FAILED: bench/gpu/run left with 1")

    def test_the_table_judges_cells(self):
        slow = TIMED | {"kernel": "gelu", "ratio": 0.98, "peer_us": 19.6}
        self.rows(TIMED, TIMED | {"peer": "compile", "ratio": 1.2}, slow,
                  slow | {"dtype": "f32", "ratio": 0.96},
                  slow | {"kernel": "embedding", "ratio": 0.5, "ceiling_fraction": 0.4})
        self.write("out/memory.notes.jsonl",
                   '{"item": "rope m=4096,n=4096 f32", "missing": "no kernel is called so"}\n')
        said = self.check("--table", suite="memory")
        self.assertRegex(said, r"softmax m=4096,n=4096 +bf16 +20.0 +15.00 +1.50 +1.20 +0.950\n")
        self.assertRegex(said, r"gelu m=4096,n=4096 +f32 .* 0.950 <\n")
        self.assertRegex(said, r"rope m=4096,n=4096 f32 +missing: no kernel is called so")
        self.assertIn("geomean softmax 1.200\n", said)
        self.assertIn("least geomean 0.500\n", said)
        self.assertIn("cells: 4, below the better peer: 2\n", said)
        self.assertIn("streaming from 256 MB: 3, least share of a copy 0.950, below 0.92: 0", said)

    def test_unverified_times_are_wrong(self):
        self.rows(TIMED | {"verified": False})
        self.assertRegex(self.check("--table", suite="memory", code=1), r"0.950 WRONG\n")

    def test_random_programs_are_checked_some_at_a_time(self):
        self.program("fuzz_device", "#!/bin/sh\necho \"$6 programs\"\n[ $6 != 50 ]")
        said = self.check("--seconds", "60", suite="random", code=1)
        self.assertRegex(said, r"programs 495..499 +right  495 programs")
        self.assertRegex(said, r"programs 50..54 +WRONG  50 programs")
        self.assertIn("100 of 100 items done", said)

    def test_micro_kernels_are_run_by_groups(self):
        self.program("micro_kernels",
                     "#!/bin/sh\nif [ $1 = --list ]; then printf 'warps\\nn=8..32\\n'\n"
                     "else echo \"$6 on $2\"; [ $6 != warps ]; fi")
        said = self.check("--seconds", "60", suite="conformance", code=1)
        self.assertRegex(said, r"warps +WRONG  warps on cuda:0")
        self.assertRegex(said, r"n=8..32 +right  n=8..32 on cuda:0")
        self.assertIn("2 of 2 items done", said)


if __name__ == "__main__":
    support.main()
