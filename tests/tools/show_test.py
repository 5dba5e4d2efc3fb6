import json
import shutil
import subprocess

import support
from support import TOOLS, ToolTest


class Show(ToolTest):
    def show(self, items):
        self.write("tools/show.d/x.json", json.dumps(items))
        shutil.copy(TOOLS / "show", self.root / "tools/show")
        return subprocess.run([self.root / "tools/show", "x"], stdout=subprocess.PIPE, text=True,
                              check=False)

    def outcomes(self, items):
        done = self.show(items)
        lines = [line.split("bar")[1].split(maxsplit=2)[2].strip()
                 for line in done.stdout.splitlines() if "  bar " in line]
        self.assertEqual(done.returncode, int(set(lines) != {"PASS"}), done.stdout)
        return lines

    def command(self, text, *figures):
        self.write("bin/say", f"#!/bin/sh\n{text}\n")
        (self.root / "bin/say").chmod(0o755)
        return [{"says": "s", "command": "bin/say",
                 "figures": [{"says": "f", "find": find, "bar": bar} for find, bar in figures]}]

    def test_figure_of_a_command(self):
        items = self.command("echo ratio 0.97", ("ratio ([0-9.]+)", ">= 0.95"))
        self.assertEqual(self.outcomes(items), ["PASS"])
        items = self.command("echo ratio 0.94; exit 3", ("ratio ([0-9.]+)", ">= 0.95"),
                             ("exit status (.*)", "== 3"), ("absent ([0-9.]+)", "<= 1"))
        self.assertEqual(self.outcomes(items), ["FAIL", "PASS", "FAIL"])

    def test_a_figure_without_a_bar_is_shown(self):
        items = self.command("echo ratio 0.5", ("ratio ([0-9.]+)", ">= 0.4"))
        items[0]["figures"].append({"says": "g", "find": "ratio ([0-9.]+)"})
        done = self.show(items)
        self.assertIn("0.5  bar none      shown", done.stdout)
        self.assertIn("1 PASS, 0 FAIL, 0 NOT RUN", done.stdout)
        self.assertEqual(done.returncode, 0)
        items[0]["figures"][1]["find"] = "absent ([0-9.]+)"
        self.assertEqual(self.show(items).returncode, 1)

    def test_what_does_not_exist_was_not_run(self):
        figure = {"says": "f", "find": "(1)", "bar": "== 1"}
        self.assertEqual(self.outcomes([{"says": "s", "command": "bin/no", "figures": [figure]}]),
                         ["NOT RUN"])
        items = self.command("echo 1", ("(1)", "== 1"))
        items[0]["needs"] = "bin/rows"
        self.assertEqual(self.outcomes(items), ["NOT RUN"])
        self.write("bin/rows", "")
        self.assertEqual(self.outcomes(items), ["PASS"])
        figure = {"says": "f", "field": "ratio", "reduce": "min", "bar": ">= 1"}
        self.assertEqual(self.outcomes([{"says": "s", "results": "no*.json", "figures": [figure]}]),
                         ["NOT RUN"])
        items = self.command("echo 'Running 0 tests from 0 test suites.'", ("(x)", "== 1"))
        self.assertEqual(self.outcomes(items), ["NOT RUN"])

    def test_figure_of_a_log(self):
        items = [{"says": "s", "log": "l.log", "figures": [
            {"says": "f", "find": "mismatches (\\d+)", "bar": "== 0"}]}]
        self.assertEqual(self.outcomes(items), ["NOT RUN"])
        self.write("l.log", "# date\nmismatches 0\n")
        self.assertEqual(self.outcomes(items), ["PASS"])
        self.write("l.log", "# date\nmismatches 2\n")
        self.assertEqual(self.outcomes(items), ["FAIL"])

    def test_figure_of_rows_is_the_median_over_runs(self):
        for run, ratios in enumerate(([1, 4], [2, 8], [0.5, 0.5])):
            rows = [{"kernel": "gemm", "ratio": r, "date": "d", "commit": "c"} for r in ratios]
            rows.append({"kernel": "softmax", "ratio": 0.1})
            self.write(f"r/run{run}.json", "\n".join(map(json.dumps, rows)))
        where = {"kernel": "gemm"}
        figures = [{"says": "f", "where": where, "field": "ratio", "reduce": reduce, "bar": bar}
                   for reduce, bar in (("geomean", "== 2"), ("min", "== 1"), ("max", "== 5"))]
        items = [{"says": "s", "results": "r/*.json", "figures": figures}]
        self.assertEqual(self.outcomes(items), ["PASS", "PASS", "FAIL"])
        figures[0]["where"] = {"kernel": "attention"}
        self.assertEqual(self.outcomes(items)[0], "NOT RUN")


if __name__ == "__main__":
    support.main()
