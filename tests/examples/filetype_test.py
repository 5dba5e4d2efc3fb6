"""Words, errors and special files of the example: filetype_test.py FILETYPE."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND = str(pathlib.Path(sys.argv.pop()).resolve())


class Filetype(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def run_it(self, *words, stdin=""):
        return subprocess.run([COMMAND, *map(str, words)], input=stdin, text=True, cwd=self.root,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def lines(self, *words, stdin=""):
        done = self.run_it(*words, stdin=stdin)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def fails(self, part, *words, stdin=""):
        done = self.run_it(*words, stdin=stdin)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stdout.splitlines()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_folders_are_walked_in_order(self):
        self.write("d/b.txt", "ab")
        self.write("d/a/empty", "")
        (self.root / "d/c").symlink_to(".")
        self.assertEqual(self.lines("d"), [
            "d/a/empty: empty (inode/x-empty, inode: Empty file) no model",
            "d/b.txt: txt (text/plain, text: Generic text document) no model",
            "d/c: directory (inode/directory, inode: A directory) no model"])

    def test_links_and_folders_can_be_what_they_are(self):
        self.write("d/x", "")
        (self.root / "link").symlink_to("d/x")
        words = "--no-dereference", "--no-recurse", "link", "d"
        self.assertEqual([line.split()[1] for line in self.lines(*words)], ["symlink", "directory"])

    def test_paths_come_from_standard_input(self):
        self.write("x", "")
        self.write("y z", "")
        self.assertEqual([line.split(": ")[0] for line in self.lines("-", stdin="y z\n\nx\n")],
                         ["y z", "x"])

    def test_batches_change_nothing(self):
        for i in range(7):
            self.write(f"f{i}", f"int f{i}(int x) {{ return x + {i}; }}\n" * (i + 1))
        rows = [json.loads(line) for line in self.lines("--json", "--batch", "1", ".")]
        self.assertEqual(len(rows), 7)
        for batch in 3, 64:
            other = [json.loads(line) for line in self.lines("--json", "--batch", batch, ".")]
            self.assertEqual([(r["path"], r["label"], r["model_label"]) for r in other],
                             [(r["path"], r["label"], r["model_label"]) for r in rows])

    def test_what_cannot_be_read_is_said_and_the_rest_done(self):
        self.write("x", "")
        (self.root / "gone").symlink_to("nowhere")
        for name in "none", "gone":
            said = self.fails(f"filetype: cannot read '{name}': No such file", name, "x")
            self.assertEqual(len(said), 1)
        rows = self.run_it("--json", "none").stdout
        self.assertEqual(json.loads(rows)["path"], "none")
        self.assertIn("No such file", json.loads(rows)["error"])

    def test_wrong_words(self):
        self.fails("no file is given")
        self.fails("--help lists what there is", "--thread", "1", "x")
        self.fails("--features needs --json", "--features", "x")
        self.fails("--batch", "--batch", "0", "x")
        self.assertIn("Examples:", "\n".join(self.lines("--help")))

    def test_models_that_are_none(self):
        self.fails("cannot read", "--model", "none/model.onnx", "x")
        self.write("p/models/m/config.min.json", "{}")
        self.fails("is not as expected", "--model", "p/models/m/model.onnx", "x")
        package = next(pathlib.Path(sys.prefix).glob("lib/*/site-packages/magika"))
        shutil.copytree(package / "config", self.root / "p/config", dirs_exist_ok=True)
        config = next(package.glob("models/*/config.min.json"))
        shutil.copy(config, self.root / "p/models/m/config.min.json")
        self.fails("cannot read", "--model", "p/models/m/model.onnx", "x")
        self.write("p/models/m/model.onnx", "nothing")
        self.fails("is no ONNX model", "--model", "p/models/m/model.onnx", "x")
        changed = json.loads(config.read_text())
        changed["mid_size"] = 8
        self.write("p/models/m/config.min.json", json.dumps(changed))
        self.fails("reads other parts of files", "--model", "p/models/m/model.onnx", "x")


unittest.main()
