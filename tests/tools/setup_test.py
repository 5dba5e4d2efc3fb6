import pathlib
import shutil
import subprocess
import unittest

import support
from support import TOOLS, ToolTest


class Setup(ToolTest):
    """tools/setup.sh with a machine made of fakes: what is on PATH is what the test put there."""

    def setUp(self):
        super().setUp()
        self.write("tools/debian-packages", "# a comment\ng++\ncmake\n")
        self.write("requirements.txt", "numpy==1\n")
        shutil.copy(TOOLS / "setup.sh", self.root / "tools/setup.sh")
        for name in ("bash", "grep", "sort", "sed", "comm", "xargs", "cat", "sha256sum", "rm",
                     "mkdir", "basename", "chmod", "touch", "echo"):
            self.fake(name, f'exec {shutil.which(name)} "$@"')
        self.fake("id", "echo 1000")
        self.installed("g++", "cmake")

    def fake(self, name, text):
        self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n")
        (self.root / "bin" / name).chmod(0o755)

    def installed(self, *packages):
        self.fake("dpkg-query", "\n".join(f"echo installed {p}" for p in packages))

    def run_function(self, function):
        command = [shutil.which("bash"), "-c", f". tools/setup.sh; {function}"]
        done = subprocess.run(command, cwd=self.root, env={"PATH": str(self.root / "bin")},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        return done.returncode, done.stdout

    def calls(self):
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def fake_apt(self, status=0):
        self.fake("apt-get", f'echo "$@" >>{self.root}/calls\nexit {status}')

    def test_nothing_is_missing(self):
        self.fake_apt()
        self.assertEqual(self.run_function("install_packages"), (0, "all packages are there\n"))
        self.assertEqual(self.calls(), [])

    def test_not_debian(self):
        status, text = self.run_function("install_packages")
        self.assertEqual(status, 3)
        self.assertIn("there is no apt-get", text)
        self.assertIn("cmake g++", text)
        self.assertIn("--no-install", text)

    def test_root_installs_only_what_is_missing(self):
        self.fake_apt()
        self.fake("id", "echo 0")
        self.installed("g++:amd64")
        self.assertEqual(self.run_function("install_packages")[0], 0)
        self.assertEqual(self.calls(), ["-q update",
                                        "-q install -y --no-install-recommends cmake"])

    def test_a_user_without_sudo_is_told_the_command(self):
        self.fake_apt()
        self.installed("cmake")
        status, text = self.run_function("install_packages")
        self.assertEqual((status, self.calls()), (3, []))
        self.assertIn("run as root: apt-get install --no-install-recommends g++", text)

    def test_a_user_with_sudo(self):
        self.fake_apt()
        self.fake("sudo", 'exec "$@"')
        self.installed("cmake")
        self.assertEqual(self.run_function("install_packages")[0], 0)
        self.assertEqual(len(self.calls()), 2)

    def test_no_network(self):
        self.fake_apt(status=100)
        self.fake("id", "echo 0")
        self.installed()
        status, text = self.run_function("install_packages")
        self.assertEqual((status, len(self.calls())), (3, 1))
        self.assertIn("no network, install by hand: cmake g++", text)

    def fake_venv(self, pip_status):
        pip = f"echo pip >>{self.root}/calls; exit {pip_status}"
        self.fake("python3", f"mkdir -p .venv/bin; printf '#!/bin/sh\\n{pip}\\n' >.venv/bin/python;"
                             " chmod +x .venv/bin/python")

    def test_venv_is_made_once_and_again_when_requirements_change(self):
        self.fake_venv(0)
        for pips in (1, 1):
            self.assertEqual(self.run_function("make_venv")[0], 0)
            self.assertEqual(len(self.calls()), pips)
        self.write("requirements.txt", "numpy==2\n")
        self.assertEqual(self.run_function("make_venv")[0], 0)
        self.assertEqual(len(self.calls()), 2)

    def test_a_failed_pip_leaves_no_venv_that_looks_done(self):
        self.fake_venv(1)
        status, text = self.run_function("make_venv")
        self.assertEqual(status, 3)
        self.assertIn("needs the package index", text)
        self.assertFalse(pathlib.Path(self.root / ".venv/requirements.sha").exists())

    def test_phases_are_timed_and_failures_kept(self):
        status, text = self.run_function("phase a true; phase b false || true; show_times")
        self.assertEqual(status, 0)
        self.assertRegex(text, r"a +\d s +\d s  ok\nb +\d s +\d s  FAILED\n$")


class Runtests(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run([TOOLS.parent / "runtests", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)

    def test_bad_arguments(self):
        for arguments in (["--only", "foo"], ["--frobnicate"]):
            with self.subTest(arguments=arguments):
                done = self.run_it(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn("--help", done.stdout)

    def test_help(self):
        done = self.run_it("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--update-golden", done.stdout)


if __name__ == "__main__":
    support.main()
