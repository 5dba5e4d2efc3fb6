"""Makes a C++ program of the listings of a page: runtime.py PAGE OUT.

The first ```cpp block is a function, the others in their order are the body of main()."""
import pathlib
import re
import sys

page, out = map(pathlib.Path, sys.argv[1:])
function, *body = re.findall(r"^```cpp\n(.*?)^```", page.read_text(), re.M | re.S)
out.write_text("\n".join([
    "#include <cstdio>", "#include <vector>", '#include "tw/base/error.h"',
    '#include "tw/jit/kernel.h"', '#include "tw/lang/lang.h"', "", "using namespace tw;", "",
    function, "int main() {", *body,
    '  std::printf("%g %d %zu %d\\n", seven, text.find("shift_rows") < text.size(), all.size(),',
    "              !file.empty() && odd_columns.count() + columns.count() == 45000);",
    "}", ""]))
