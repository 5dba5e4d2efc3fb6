
import support
from support import ToolTest


def function(lines, head="int f(int a) {"):
    return head + "\n" + "  a += 1;\n" * (lines - 2) + "}\n"


SHORT = "".join(function(3, f"int s{i}(int a) {{") for i in range(20))


class Budgets(ToolTest):
    tool = "check_budgets.py"

    def test_80_lines_pass_and_81_do_not(self):
        self.write("tw/base/a.cpp", SHORT + function(80))
        self.accepts()
        self.write("tw/base/a.cpp", SHORT + function(81))
        self.rejects("tw/base/a.cpp:61: a function of 81 lines; at most 80")

    def test_every_kind_of_function(self):
        heads = ["A::A(int a) : a_(a), b_{a}, c_({1}) {", "auto f = [](int a) -> int {",
                 "template <class T, class U = void>\nint f(T a) const noexcept {",
                 "struct alignas(64) B {\n public:\n  void f(int a = g({1})) {",
                 "namespace x::y {\nclass C final : public D {\n  bool operator()(int a) {",
                 'extern "C" {\nvoid f(int a) {', "TEST(Suite, Case) {"]
        for head in heads:
            with self.subTest(head=head):
                self.write("tw/base/a.cpp", SHORT + function(90, head) + "}}")
                self.rejects("a function of ")

    def test_what_is_no_function(self):
        for head in ("const int kTable[] = {", "struct S {", "namespace a {",
                     "enum class E : int {", "template <class T>\nclass X {"):
            with self.subTest(head=head):
                self.write("tw/base/a.cpp", head + "\n" + "  // x\n" * 90 + "};\n" + SHORT)
                self.accepts()

    def test_braces_in_text_and_comments(self):
        body = "const char* t = \"{\"; // {\n"
        body += "char c = '{'; int n = 1'000'000; auto r = R\"({{{)\";\n"
        self.write("tw/base/a.cpp", "void f() {\n" + body + "}\n" + SHORT + function(81))
        self.rejects("tw/base/a.cpp:65: a function of 81 lines")

    def test_marker_excuses_a_table_and_must_be_needed(self):
        marker = "// budget: table, one case an opcode\n"
        self.write("tw/base/a.cpp", SHORT + marker + function(200))
        self.assertIn("200 lines: // budget: table", self.accepts())
        self.write("tw/base/a.cpp", SHORT + marker + function(20))
        self.rejects("marker that no long function needs")
        self.write("tw/base/a.cpp", SHORT + "// budget: table\n" + function(200))
        self.rejects("a function of 200 lines")

    def test_nine_of_ten(self):
        self.write("tw/base/a.cpp", function(40) * 2 + function(5) * 8)
        self.rejects("nine of ten functions have up to 40 lines; at most 35")

    def test_file_length(self):
        self.write("tw/base/a.cpp", "int a;\n" * 500)
        self.accepts()
        self.write("tw/base/a.cpp", "int a;\n" * 501)
        self.rejects("tw/base/a.cpp: 501 lines; at most 500")
        self.write("tw/base/a.cpp", "// budget: file, a table of data\n" + "int a;\n" * 501)
        self.accepts()
        self.write("tw/base/a.cpp", "// budget: file, a table of data\n")
        self.rejects("marker it does not need")

    def test_columns(self):
        self.write("tools/run", "#!/bin/bash\n" + "x" * 101 + "\n")
        self.rejects("tools/run:2: 101 columns; at most 100")

    def test_python(self):
        self.write("tools/a.py", "def f(a):\n" + "    a += 1\n" * 80)
        self.rejects("tools/a.py:1: a function of 81 lines")

    def test_layers_are_counted_without_comments(self):
        self.write("tw/base/a.cpp", "// one\n\nint a;\nint b;  // two\n/* three\nfour */\n")
        self.assertRegex(self.accepts(), r"tw/base +2 ")


if __name__ == "__main__":
    support.main()
