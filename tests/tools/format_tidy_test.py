import json
import shutil
import subprocess

import support
from support import TOOLS, ToolTest


class Sources(ToolTest):
    def setUp(self):
        super().setUp()
        (self.root / "tools").mkdir()
        for name in ("sources.py", "format", "tidy", "../.clang-format", "../.clang-tidy"):
            shutil.copy(TOOLS / name, (self.root / "tools" / name).resolve())

    def run_tool(self, *arguments):
        done = subprocess.run([self.root / "tools" / self.tool, *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout


class Format(Sources):
    tool = "format"

    def test_reports_fixes_and_looks_again_after_a_change(self):
        self.write("tw/base/a.cpp", "int  a ;\n")
        self.assertEqual(self.run_tool(), (1, "tw/base/a.cpp: run tools/format --fix\n"))
        self.assertEqual(self.run_tool("--fix"), (0, "format: ok\n"))
        self.assertEqual((self.root / "tw/base/a.cpp").read_text(), "int a;\n")
        self.assertEqual(self.run_tool()[0], 0)
        self.write("tw/base/a.cpp", "int  b ;\n")
        self.assertEqual(self.run_tool()[0], 1)


class Tidy(Sources):
    tool = "tidy"

    def setUp(self):
        super().setUp()
        unit = self.root / "build/release/unity_0_cxx.cxx"
        self.write("build/release/compile_commands.json", json.dumps([{
            "directory": str(self.root), "file": str(unit),
            "command": f"g++ -std=c++20 -Wno-restrict -I{self.root} -c {unit}"}]))
        self.write("build/release/unity_0_cxx.cxx", f'#include "{self.root}/tw/base/a.cpp"\n')
        self.write("tw/base/a.h", "#pragma once\nstruct Good {};\n")
        self.write("tw/base/a.cpp", '#include "tw/base/a.h"\nGood make() { return {}; }\n')

    def test_a_clean_file_is_looked_at_once(self):
        self.assertEqual(self.run_tool(), (0, "ok  build/release/unity_0_cxx.cxx\ntidy: ok\n"))
        self.assertEqual(self.run_tool(), (0, "tidy: ok\n"))

    def test_a_changed_file_is_looked_at_again(self):
        self.assertEqual(self.run_tool()[0], 0)
        for suffix in ("h", "cpp"):
            text = (self.root / f"tw/base/a.{suffix}").read_text()
            self.write(f"tw/base/a.{suffix}", text + f"struct bad_{suffix} {{}};\n")
            for arguments in ((), (self.root / "tw/base/a.cpp",), ()):
                status, said = self.run_tool(*arguments)
                self.assertEqual(status, 1)
                self.assertIn(f"bad_{suffix}", said)

    def test_a_file_of_no_target_is_refused(self):
        self.write("tw/base/b.cpp", "int b;\n")
        status, said = self.run_tool()
        self.assertEqual(status, 1)
        self.assertIn("tw/base/b.cpp is in no target", said)

    def test_a_file_of_another_folder_is_refused(self):
        status, said = self.run_tool(self.root / "tools/tidy")
        self.assertEqual(status, 1)
        self.assertIn("tools/tidy is in no translation unit", said)


if __name__ == "__main__":
    support.main()
