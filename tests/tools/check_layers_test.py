
import support
from support import ToolTest


class Layers(ToolTest):
    tool = "check_layers.py"

    def setUp(self):
        super().setUp()
        self.write("tw/LAYERS", "base:\nmath: base  # why\nir: base math\n")
        self.write("tw/base/a.h", "#pragma once\n#include <string>\n")
        self.write("tw/math/m.h", '#include "tw/base/a.h"\n')
        self.write("tw/ir/i.h", '#include "tw/math/m.h"\n')

    def test_a_legal_tree_passes(self):
        self.write("tests/ir/t.cpp", '#include "tw/ir/i.h"\n#include <gtest/gtest.h>\n')
        self.accepts()

    def test_upward_include_in_every_form(self):
        for form in ('"tw/ir/i.h"', "<tw/ir/i.h>", '"../ir/i.h"', '"../../tw/ir/i.h"'):
            with self.subTest(form=form):
                self.write("tw/math/bad.cpp", f"# include {form}\n")
                self.rejects("tw/math/bad.cpp:1: 'math' must not include 'ir'")

    def test_legal_target_in_an_illegal_form(self):
        for form in ("<tw/base/a.h>", '"../base/a.h"'):
            with self.subTest(form=form):
                self.write("tw/math/form.h", f"#include {form}\n")
                self.rejects('write #include "tw/base/a.h"')

    def test_neighbour_by_bare_name(self):
        self.write("tw/math/n.cpp", '#include "m.h"\n')
        self.rejects('write #include "tw/math/m.h"')

    def test_macro_and_missing_file(self):
        self.write("tw/math/x.cpp", '#include WHERE\n#include "tw/math/gone.h"\n')
        self.rejects("include of the macro WHERE")
        self.rejects("tw/math/x.cpp:2: no such file: tw/math/gone.h")

    def test_a_folder_outside(self):
        self.write("tests/support/s.h", "")
        self.write("tw/math/x.cpp", '#include "tests/support/s.h"\n')
        self.rejects("'math' must not include 'tests/'")

    def test_comments_and_emitted_text_are_no_includes(self):
        self.write("tw/math/x.cpp", '// #include "tw/ir/i.h"\n/*\n#include "tw/ir/i.h"\n*/\n'
                                    'auto t = R"(\n#include "tw/ir/i.h"\n)";\n')
        self.accepts()

    def test_folder_missing_from_layers(self):
        self.write("tw/extra/e.h", "")
        self.rejects("tw/extra/ is missing from tw/LAYERS")

    def test_cycle_of_layers(self):
        self.write("tw/LAYERS", "base:\nmath: base ir\nir: base math\n")
        self.rejects("'math' uses 'ir', which is not above it")

    def test_cycle_of_headers(self):
        self.write("tw/base/a.h", '#include "tw/base/b.h"\n')
        self.write("tw/base/b.h", '#include "tw/base/a.h"\n')
        self.rejects("include cycle: tw/base/a.h -> tw/base/b.h -> tw/base/a.h")

    def test_private_header(self):
        self.write("tw/base/impl/p.h", "")
        self.write("tw/base/own.cpp", '#include "tw/base/impl/p.h"\n')
        self.accepts()
        self.write("tw/math/x.cpp", '#include "tw/base/impl/p.h"\n')
        self.rejects("tw/base/impl/p.h is private to 'base'")

    def test_six_public_headers(self):
        for i in range(6):
            self.write(f"tw/base/h{i}.h", "")
        self.write("tw/math/x.cpp", "".join(f'#include "tw/base/h{i}.h"\n' for i in range(4)))
        self.accepts()
        self.write("tw/ir/y.cpp", '#include "tw/base/h4.h"\n#include "tw/base/h5.h"\n')
        self.rejects("tw/base: other layers include 7 of its headers")

    def test_cmake_names_known_layers(self):
        self.write("CMakeLists.txt", "set(TW_EXTERNAL_math fmt)\n"
                                    "target_link_libraries(tw_ir tw_math)\n")
        self.accepts()
        self.write("cmake/x.cmake", "set(TW_EXTERNAL_maths fmt)\n")
        self.rejects("TW_EXTERNAL_maths: no such layer")
        self.write("cmake/x.cmake", "target_link_libraries(tw_math PUBLIC tw_ir)\n")
        self.rejects("tw_math must not link tw_ir")

    def test_undeclared_folder_of_tests(self):
        self.write("tests/ir/ir_test.cpp", "")
        self.rejects("tests/ir: tests/CMakeLists.txt has no tw_add_test(ir ...)")
        self.write("tests/CMakeLists.txt", "tw_add_test(ir ir)\n")
        self.accepts()

    def test_private_function_with_the_name_of_a_headers(self):
        header = ("namespace tw {\nvoid put(const std::string& path,\n"
                  "         const std::vector<std::pair<int, int>>& parts = {});\n}\n")
        self.write("tw/base/file.h", header)
        in_space = "namespace tw {\n%s\n}\n".__mod__
        local = "namespace {\nvoid put(%s) {\n  go();\n}\n}  // namespace".__mod__
        hidden = "'put' hides that of tw/base/file.h"
        for text in ("static void put(const std::string& p, const std::string& text) {\n}",
                     local("const std::string& p, int n"), local("const std::string&, int")):
            with self.subTest(text=text):
                self.write("tw/ir/x.cpp", in_space(text))
                self.rejects(hidden)
        for text in ("void put(const std::string& p, const std::string& text) {\n}",
                     local("const std::string& p"), local("int p, int n"),
                     "namespace cpu {\n" + local("const std::string& p, int n") + "\n}",
                     "struct A {\n  static void put(const std::string& p, int n) {}\n};",
                     "static void get() {\n  put(a, b);\n}"):
            with self.subTest(text=text):
                self.write("tw/ir/x.cpp", in_space(text))
                self.accepts()
        self.write("tw/ir/x.cpp", "")
        self.write("tw/base/x.cpp", in_space(local("const std::string& p, int n")))
        self.rejects(hidden)
        self.write("tw/base/x.cpp", "")
        self.write("tw/math/x.cpp", in_space(local("const std::string& p, int n")))
        self.rejects(hidden)
        self.write("tw/LAYERS", "base:\nmath:\nir: base\n")
        self.write("tw/math/m.h", "")
        self.write("tw/ir/i.h", "")
        self.accepts()


if __name__ == "__main__":
    support.main()
