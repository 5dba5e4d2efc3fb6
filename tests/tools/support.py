"""Runs a check of tools/ on a small tree made for one test."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
sys.path.append(str(TOOLS))

from sources import Memory  # noqa: E402  (found through the line above)


def main():
    """unittest.main for tests that depend on the tools alone: once passed, they are run again only
    after a change of a tool or of these tests (always in CI)."""
    paths = [*TOOLS.iterdir(), *(ROOT / "tests/tools").iterdir(), *(ROOT / "bench/gpu").iterdir(),
             *ROOT.glob(".clang-*"), ROOT / "runtests"]
    content = b"".join(p.read_bytes() for p in sorted(paths) if p.is_file())
    key = hashlib.sha256(content).hexdigest()
    memory = Memory(ROOT / f"build/tools/{pathlib.Path(sys.argv[0]).stem}.ok")
    if key in memory.keys and not os.environ.get("CI"):
        print("unchanged since it passed")
        return
    result = unittest.main(exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    memory.keep([key])


class ToolTest(unittest.TestCase):
    tool = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self):
        return subprocess.run([sys.executable, TOOLS / self.tool, self.root], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def accepts(self):
        done = self.run_tool()
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def rejects(self, part):
        done = self.run_tool()
        self.assertIn(part, done.stdout)
        self.assertEqual(done.returncode, 1, done.stdout)
