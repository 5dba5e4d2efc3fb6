import json
import shutil
import subprocess

import support
from support import TOOLS, ToolTest

ROW = {"suite": "sgemm", "kernel": "gemm", "shape": "m=64", "dtype": "f32", "threads": 1,
       "cache": "warm", "peer": "openblas", "peer_about": "core X", "device": "CPU",
       "driver": "Linux", "toolchain": "g++", "date": "2026-11-30", "commit": "abc",
       "time_us": 10.0, "ratio": 1.0, "ci95": [0.9, 1.1], "fraction": 0.5,
       "ceiling_fraction": 0.75, "blocks": 15, "disturbed": 1}


class Performance(ToolTest):
    def performance(self, *arguments):
        self.write("tools/keep", "")
        self.write("docs/keep", "")
        shutil.copy(TOOLS / "performance", self.root / "tools/performance")
        return subprocess.run([self.root / "tools/performance", *arguments], check=False,
                              stderr=subprocess.PIPE, text=True)

    def page(self):
        return (self.root / "docs/performance.md").read_text()

    def runs(self, *ratios):
        for i, ratio in enumerate(ratios):
            self.write(f"bench/results/spine/run-{i}.json",
                       json.dumps(ROW | {"ratio": ratio}) + "\n")

    def test_shows_the_median_over_runs(self):
        self.runs(1.0, 3.0, 1.25)
        self.assertEqual(self.performance().returncode, 0)
        self.assertIn("| gemm m=64 | f32 | 1 | warm | 10.0 | openblas | 1.250 | 0.900 .. 1.100 "
                      "| 0.50 | 0.75 |", self.page())
        self.assertIn("disturbed by other processes: 3 of 45", self.page())

    def test_check_fails_until_the_page_is_written(self):
        self.runs(1.0)
        self.assertIn("run tools/performance", self.performance("--check").stderr)
        self.performance()
        self.assertEqual(self.performance("--check").returncode, 0)
        self.runs(1.5)
        self.assertEqual(self.performance("--check").returncode, 1)

    def test_rows_of_gpus_stand_in_a_table_of_their_own(self):
        gpu = ROW | {"shape": "m=4,n=8", "launch": "graph", "bytes": 3e7, "flops": 0,
                     "ceiling_fraction": 0.9375, "peer": "eager", "kernel": "softmax"}
        rows = [gpu, gpu | {"peer": "compile", "ratio": 0.5}, gpu | {"launch": "plain"},
                gpu | {"kernel": "gemm", "flops": 1e10}]
        self.write("bench/results/gpu/memory.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
        self.write("bench/results/gpu/random.jsonl", '{"item": "programs 0..24", "ok": true}\n')
        self.performance()
        self.assertIn("| softmax m=4,n=8 | f32 | 10.0 | 3.00 TB/s | 1.000 (0.900 .. 1.100) | "
                      "0.500 (0.900 .. 1.100) | 0.938 |", self.page())
        self.assertIn("| softmax m=4,n=8, plain | f32 | 10.0 | 3.00 TB/s | 1.000 (0.900 .. 1.100)"
                      " |  | 0.938 |", self.page())
        self.assertIn("| gemm m=4,n=8 | f32 | 10.0 | 1000.0 TFLOP/s |", self.page())
        self.assertNotIn("### random", self.page())

    def test_no_results(self):
        self.performance()
        self.assertIn("No results are committed.", self.page())


if __name__ == "__main__":
    support.main()
