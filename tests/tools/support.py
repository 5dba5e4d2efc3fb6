"""Runs a check of tools/ on a small tree made for one test."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


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
