"""bench/report on a few rows, seen by a browser: what its DOM holds, that nothing lies outside of
its drawing or is fetched, and that the picture is not empty. tools/debian-packages has the
browser."""
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSER = shutil.which("chromium-headless-shell")
ROW = {"suite": "sgemm", "kernel": "gemm", "shape": "k=64,m=64,n=64", "dtype": "f32", "threads": 1,
       "cache": "warm", "mapping": "cpu1", "device": "CPU <1>", "driver": "Linux",
       "toolchain": "g++", "date": "2026-11-30", "commit": "abc", "time_us": 10.0,
       "ci95": [0.9, 1.1], "peer": "openblas", "peer_about": "core X", "peer_us": 10.0,
       "ratio": 1.0, "bytes": 49152, "flops": 524288, "limit_us": 5.0, "fraction": 0.5,
       "ceiling_fraction": 0.75, "bound": "arithmetic", "verified": True,
       "max_err_over_bound": 0.5, "blocks": 9, "disturbed": 0}
ROWS = [ROW, ROW | {"date": "2026-12-01", "commit": "def", "ratio": 1.25, "ci95": [1.2, 1.3]},
        ROW | {"peer": "onednn", "ratio": 0.8, "ci95": [0.75, 0.85]},
        ROW | {"kernel": "softmax", "suite": "softmax", "shape": "m=8,n=64", "flops": 4e5,
               "bytes": 8e5, "bound": "bandwidth", "ratio": 7.5, "ci95": [7, 8]},
        ROW | {"kernel": "copy", "suite": "memory", "flops": 0, "bound": "bandwidth", "peer": ""}]
# Texts and shapes that lie outside of their drawing, by half a unit or more.
OUTSIDE = """<script>
let bad = [];
for (const svg of document.querySelectorAll('svg')) {
  const v = svg.viewBox.baseVal;
  for (const e of svg.querySelectorAll('text, rect, circle, line, polyline')) {
    const b = e.getBoundingClientRect(), o = svg.getBoundingClientRect();
    if (b.left < o.left - 1 || b.right > o.right + 1 || b.top < o.top - 1 ||
        b.bottom > o.bottom + 1) bad.push(e.outerHTML);
  }
}
document.body.dataset.outside = JSON.stringify(bad);
document.body.dataset.fetched = performance.getEntriesByType('resource').length;
</script>"""


def pixels(png):
    """(width, height, colours of the rows' bytes) of a PNG."""
    width, height = struct.unpack(">II", png[16:24])
    data, at = b"", 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        data += png[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    return width, height, zlib.decompress(data)


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.page = self.folder / "report.html"

    def report(self, rows, *words):
        (self.folder / "rows.json").write_text("".join(json.dumps(r) + "\n" for r in rows))
        return subprocess.run([ROOT / "bench/report", "--rows", self.folder / "rows.json",
                               "--output", self.page, *words], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def browse(self, *words):
        return subprocess.run([BROWSER, "--no-sandbox", "--disable-gpu", "--window-size=1040,1500",
                               f"--user-data-dir={self.folder}/browser", *words,
                               self.page.as_uri()], text=True, check=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def test_text_of_the_page(self):
        self.assertEqual(self.report(ROWS).returncode, 0)
        page = self.page.read_text()
        self.assertIn("5 rows, 2026-11-30 to 2026-12-01", page)
        self.assertIn("CPU &lt;1&gt;", page)
        self.assertIn("1.250 [1.200, 1.300], 2026-12-01 def", page)
        self.assertNotIn("1.000 [0.900, 1.100]", page)  # an older row of the same key
        self.assertIsNone(re.search(r"(https?:)?//[a-z]|<script|<link|@import|url\(", page))

    def test_committed_rows(self):
        done = subprocess.run([ROOT / "bench/report", "--output", self.page], check=False,
                              stdout=subprocess.PIPE, text=True)
        self.assertRegex(done.stdout, r"report\.html: \d{3,} rows")
        self.assertIn("roofline of", self.page.read_text())

    def test_no_rows_are_an_error(self):
        self.expect_refused(self.report([{"item": "x"}]), "no rows of times in")

    def expect_refused(self, done, part):
        """By one line, and the code of what the user got wrong."""
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Abench/report: .*\n\Z")
        self.assertIn(part, done.stderr)

    def test_calls_that_only_move_data_need_no_bandwidth(self):
        done = self.report([ROW | {"flops": 0, "bound": "launch"}])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 calls that only move data.</p>", self.page.read_text())

    def test_malformed_rows_are_errors(self):
        for field, value, part in (
                ("time_us", "fast", "'time_us' is \"fast\"; wanted a number above 0"),
                ("time_us", 0, "'time_us' is 0; wanted a number above 0"),
                ("time_us", True, "'time_us' is true; wanted a number above 0"),
                ("bytes", -1, "'bytes' is -1; wanted a number from 0"),
                ("ratio", 0, "'ratio' is 0; wanted a number above 0"),
                ("ratio", "x", "'ratio' is \"x\"; wanted a number from 0"),
                ("ratio", math.inf, "'ratio' is Infinity; wanted a number from 0"),
                ("ci95", [1], "'ci95' is [1]; wanted [low, high]"),
                ("ci95", 1.0, "'ci95' is 1.0; wanted [low, high]"),
                ("threads", "1", "'threads' is \"1\"; wanted a whole number"),
                ("cache", ["warm"], "'cache' is [\"warm\"]; wanted a text"),
                ("date", 2026, "'date' is 2026; wanted a text"),
                ("verified", False, "'verified' is false; wanted true")):
            self.expect_refused(self.report([ROW, ROW | {field: value}]), f"rows.json:2: {part}")
        for field in ROW.keys() - {"cache", "mapping", "driver", "toolchain", "peer_about",
                                   "peer_us", "ceiling_fraction", "max_err_over_bound", "blocks",
                                   "disturbed"}:
            row = {key: value for key, value in ROW.items() if key != field}
            self.expect_refused(self.report([row]), f"rows.json:1: the row lacks '{field}'")
        self.expect_refused(self.report([ROW, [1, 2]]), "rows.json:2: no row; wanted a JSON object")

    def test_files_that_are_none_are_errors(self):
        for words, part in (
                (("--rows", self.folder / "none"), "none': No such file or directory; name a file"),
                (("--rows", ROOT / "README.md"), "README.md:1: no row; wanted a JSON object"),
                (("--rows", "/bin/sh"), "'/bin/sh' holds what is no text"),
                (("--output", "/dev/null/page"), "cannot write '/dev/null/page'")):
            self.expect_refused(self.report([ROW], *words), part)

    def dom(self):
        """Of the page, after it looked at itself."""
        self.page.write_text(self.page.read_text().replace("</body>", OUTSIDE + "</body>"))
        dom = self.browse("--dump-dom")
        self.assertIn('data-outside="[]"', dom)
        self.assertIn('data-fetched="0"', dom)
        return dom

    @unittest.skipUnless(BROWSER, "chromium-headless-shell is not installed")
    def test_dom_of_committed_rows(self):
        subprocess.run([ROOT / "bench/report", "--output", self.page], check=True,
                       stdout=subprocess.DEVNULL)
        self.assertGreater(self.dom().count('class="point"'), 100)

    @unittest.skipUnless(BROWSER, "chromium-headless-shell is not installed")
    def test_dom(self):
        self.report(ROWS)
        dom = self.dom()
        for what, count in (("point", 3), ("roof", 2), ("bar", 2), ("bar slower", 1),
                            ("whisker", 3), ("history", 2), ("moment", 3)):
            self.assertEqual(dom.count(f'class="{what}"'), count, what)

    @unittest.skipUnless(BROWSER, "chromium-headless-shell is not installed")
    def test_screenshot(self):
        self.report(ROWS)
        shot = self.folder / "shot.png"
        self.browse(f"--screenshot={shot}")
        width, height, bits = pixels(shot.read_bytes())
        self.assertEqual((width, height), (1040, 1500))
        self.assertGreater(len(set(bits)), 64)  # an empty page has few different bytes
        self.page.write_text("<!doctype html><body></body>")
        self.browse(f"--screenshot={shot}")
        self.assertLess(len(set(pixels(shot.read_bytes())[2])), 8)


if __name__ == "__main__":
    unittest.main()
