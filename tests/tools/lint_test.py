import platform

import support
from support import ToolTest


class Lint(ToolTest):
    tool = "lint.py"

    def reject_each(self, name, lines, part):
        for line in lines:
            with self.subTest(line=line):
                self.write(name, line + "\n")
                self.rejects(part)

    def accept_each(self, name, lines):
        for line in lines:
            with self.subTest(line=line):
                self.write(name, line + "\n")
                self.accepts()

    def test_tolerances(self):
        self.reject_each("tests/a/a_test.cpp", [
            "EXPECT_NEAR(a, b, 1e-5);", "ASSERT_NEAR(f(a, b), b, 0.01f) << x;",
            "EXPECT_FLOAT_EQ(a, b);", "EXPECT_THAT(a, FloatNear(b, c));",
            "EXPECT_LT(std::abs(a - b), 1e-6);", "EXPECT_TRUE(err < 1e-3f);",
        ], "tolerance; use check::bound")
        self.accept_each("tests/a/a_test.cpp", [
            "EXPECT_NEAR(a, b, check::bound(f));", "float x = 1e-5;", "EXPECT_LE(err, bound);"])
        self.accept_each("bench/b.cpp", ["if (err < 1e-3) retry();"])
        self.reject_each("tests/python/a.py", ["assert_allclose(a, b, rtol=1e-5)"], "check::bound")

    def test_open_ends(self):
        self.reject_each("tw/base/a.h", ["// TODO: later", "int a;  // FIXME", "/* XXX */"],
                         "a TODO without the number")
        self.accept_each("tw/base/a.h", ["// TODO(#12): later", "int kTODO;"])

    def test_dead_code(self):
        self.reject_each("tw/base/a.cpp", [
            "// foo(a, b);", "// return x;", "// int a = b + 1;", "// for (int i : x) {", "// }",
            "/* a.b->c(d); */", "  x = 1;  // y = 2;"], "commented-out code")
        self.reject_each("tw/base/a.cpp", ["#if 0"], "code under #if 0")
        self.accept_each("tw/base/a.cpp", [
            "// reads a; then writes b", "/// for i: use(x);", "// why: the pool may be empty",
            "// if the pool is empty, run here", "auto url = \"// f(x);\";"])

    def test_default_over_an_enum(self):
        self.reject_each("tw/base/a.cpp", ["switch (x) { case Op::add: f(); default: g(); }"],
                         "'default:' in a switch over an enum")
        self.accept_each("tw/base/a.cpp", ["switch (c) { case '+': f(); default: g(); }",
                                           "switch (n) { case 4: f(); default: g(); }",
                                           "struct A { A() = default; };"])

    def test_hosts(self):
        self.reject_each("docs/a.md", ["see https://apt.corp.internal/debian", "ssh 10.1.2.3"],
                         "names the host")
        self.accept_each("docs/a.md", ["https://arxiv.org/abs/1", "version 1.2.3"])
        if len(platform.node()) > 4 and platform.node() not in ("localhost", "debian"):
            self.reject_each("bench/results/a.json", [f'{{"host": "{platform.node()}"}}'],
                             "names this machine")


if __name__ == "__main__":
    support.main()
