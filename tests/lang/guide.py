"""Makes a C++ program of the listings of a page: guide.py PAGE OUT.

Each ```cpp block defines one function that gives a Program; main() traces them all."""
import pathlib
import re
import sys

page, out = map(pathlib.Path, sys.argv[1:])
blocks = re.findall(r"^```cpp\n(.*?)^```", page.read_text(), re.M | re.S)
names = [re.search(r"^Program (\w+)\(([^)]*)\)", block, re.M) for block in blocks]
calls = [f"  show({n[1]}({', '.join(['48'] * len(n[2].split(',')) if n[2] else [])}));"
         for n in names]
out.write_text("\n".join([
    "#include <cstdio>", "#include <limits>", '#include "tw/ir/print.h"',
    '#include "tw/lang/lang.h"', "", "using namespace tw;", "", *blocks,
    "static void show(const Program& p) {",
    '  std::printf("%s: %zu characters\\n", p.name.c_str(), print(parse(print(p))).size());', "}",
    "", "int main() {", *calls, f'  std::puts("traced {len(blocks)} listings");', "}", ""]))
