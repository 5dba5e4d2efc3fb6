#!/usr/bin/env python3
"""Fails when the code breaks tw/LAYERS: check_layers.py [ROOT].

- LAYERS: a name uses only names above it; every folder of tw/ is named there.
- Every include form ("tw/..", <tw/..>, "../..", "neighbour.h") is resolved and must be allowed;
  only the form "tw/<layer>/<file>" is legal, and no layer includes a folder outside tw/.
- Headers of tw/x/impl/ belong to tw/x; other layers see at most five headers of a layer.
- Includes have no cycle.
- CMake: TW_EXTERNAL_<x> and tw_<x> name known layers; no link beside those LAYERS allows.
- Every folder of tests is declared in tests/CMakeLists.txt.
- A function private to a file has no namesake (namespace, number of parameters, type of the first)
  in a header that its layer may include: the files of a layer are compiled as one, and a call meant
  for the header's, in another file, would reach the private one.
"""
import re

from sources import FOLDERS, blank, files, finish, root_from_argv

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(\w+))', re.M)
PUBLIC_HEADERS = 5
# Formatted text is assumed: a function of a namespace begins its line, one of a class does not.
FUNCTION = re.compile(r"^(?!return\b|using\b)[\w\[][\w:<>,&*\[\] ]* [&*]*([a-z]\w*)"
                      r"\(((?:[^;{}]|\{\})*?)\)[^;(){}]*[;{]", re.M)
NAMESPACE = re.compile(r"^namespace (?:([\w:]+) )?\{$|^\}  // namespace", re.M)


def read_layers(root):
    """{name: names it may include, itself among them}, and what is wrong with the file."""
    allowed, bad = {}, []
    for line in (root / "tw/LAYERS").read_text().splitlines():
        name, _, uses = (part.strip() for part in line.partition("#")[0].partition(":"))
        if not name:
            continue
        for use in uses.split():
            if use not in allowed:
                bad.append(f"tw/LAYERS: '{name}' uses '{use}', which is not above it")
        if name in allowed:
            bad.append(f"tw/LAYERS: '{name}' is named twice")
        allowed[name] = set(uses.split()) | {name}
    for folder in sorted((root / "tw").iterdir()):
        if folder.is_dir() and folder.name not in allowed:
            bad.append(f"tw/{folder.name}/ is missing from tw/LAYERS")
    return allowed, bad


def resolve(root, path, quoted, angled):
    """The file of ours that the include means, or None for one of the system or a dependency."""
    bases = [path.parent, root] if quoted else [root]
    for base in bases:
        target = (base / (quoted or angled)).resolve()
        if target.is_file() and target.is_relative_to(root):
            return target
    return None


def read_includes(root):
    """(path, line, how it is written, target) of every include of a file of ours; and bad forms."""
    edges, bad = [], []
    for path in files(root, {".h", ".cpp", ".def"}):
        text = blank(path.read_text(), strings=False)
        for match in INCLUDE.finditer(text):
            quoted, angled, macro = match.groups()
            where = f"{path.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
            target = None if macro else resolve(root, path, quoted, angled)
            if macro:
                bad.append(f"{where}: include of the macro {macro}; name the file")
            elif target is None:
                if re.match(r"(\.|tw/)", quoted or angled):
                    bad.append(f"{where}: no such file: {quoted or angled}")
            else:
                if quoted != str(target.relative_to(root)):
                    bad.append(f'{where}: write #include "{target.relative_to(root)}"')
                edges.append((path.relative_to(root), where, target.relative_to(root)))
    return edges, bad


def check_edges(allowed, edges):
    bad, seen_outside = [], {}
    for source, where, target in edges:
        inside, impl = source.parts[0] == "tw", target.parts[2:3] == ("impl",)
        owner = target.parts[1] if target.parts[0] == "tw" else None
        layer = source.parts[1]
        if inside and owner is None:
            bad.append(f"{where}: '{layer}' must not include '{target.parts[0]}/'")
        elif inside and owner not in allowed.get(layer, ()):
            bad.append(f"{where}: '{layer}' must not include '{owner}'")
        elif impl and layer != owner:
            bad.append(f"{where}: {target} is private to '{owner}'")
        if inside and owner and owner != layer and target.suffix == ".h":
            seen_outside.setdefault(owner, set()).add(str(target))
    for owner, headers in sorted(seen_outside.items()):
        if len(headers) > PUBLIC_HEADERS:
            bad.append(f"tw/{owner}: other layers include {len(headers)} of its headers, at most "
                       f"{PUBLIC_HEADERS} may be public: {' '.join(sorted(headers))}")
    return bad


def find_cycle(edges):
    uses = {}
    for source, _, target in edges:
        uses.setdefault(source, []).append(target)
    done, path = set(), []

    def visit(file):
        if file in path:
            return path[path.index(file):] + [file]
        if file in done:
            return None
        path.append(file)
        for target in uses.get(file, ()):
            if cycle := visit(target):
                return cycle
        path.pop()
        done.add(file)
        return None

    for file in list(uses):
        if cycle := visit(file):
            return ["include cycle: " + " -> ".join(map(str, cycle))]
    return []


def check_cmake(root, allowed):
    bad = []
    paths = [root / "CMakeLists.txt", *files(root, {".cmake", ".txt"}, ["cmake", *FOLDERS])]
    for path in (p for p in paths if p.is_file()):
        text = re.sub(r"#.*", "", path.read_text())
        for name in re.findall(r"\bTW_EXTERNAL_(\w+)", text):
            if name not in allowed:
                bad.append(f"{path.relative_to(root)}: TW_EXTERNAL_{name}: no such layer")
        for name, links in re.findall(r"target_link_libraries\(\s*tw_(\w+)([^)]*)\)", text):
            for link in re.findall(r"\btw_(\w+)", links):
                if link != "options" and link not in allowed.get(name, ()):
                    bad.append(f"{path.relative_to(root)}: tw_{name} must not link tw_{link}")
    return bad


def check_tests(root):
    """A folder of tests that no line of CMake declares would never run."""
    declared = root / "tests/CMakeLists.txt"
    text = declared.read_text() if declared.is_file() else ""
    folders = {p.parent.name for p in root.glob("tests/*/*_test.cpp")}
    return [f"tests/{folder}: tests/CMakeLists.txt has no tw_add_test({folder} ...)"
            for folder in sorted(folders - set(re.findall(r"tw_add_test\((\w+)", text)))]


def first_parameter(text):
    """How many parameters there are, and the type of the first."""
    before = None
    while before != text:  # a '<' may also be a comparison, which has no end
        before = text
        text = re.sub(r"<([^<>]*)>", lambda m: f"[{m[1].replace(',', ';')}]", text)
    params = [re.sub(r"\s*=.*", "", p.strip()) for p in text.split(",") if p.strip()]
    named = r"(?<=[\w\]&*])\s*(?<![:\w])\w+$"
    return len(params), re.sub(named, "", params[0]).strip() if params else ""


def functions(path):
    """(key, line, whether it is private to the file) of each function of a namespace."""
    text = path.read_text()
    marks = [(m.start(), m) for m in NAMESPACE.finditer(text)]
    spaces = []
    for match in FUNCTION.finditer(blank(text)):
        while marks and marks[0][0] < match.start():
            _, mark = marks.pop(0)
            if mark[0].startswith("}"):
                del spaces[-1:]
            else:
                spaces.append(mark[1] or "")
        key = ("::".join(filter(None, spaces)), match[1], *first_parameter(match[2]))
        private = "" in spaces or match[0].startswith("static ")
        yield key, text.count("\n", 0, match.start()) + 1, private


def check_namesakes(root, allowed):
    declared = {}
    for path in files(root, {".h"}, ["tw"]):
        for key, _, _ in functions(path):
            declared.setdefault(key, []).append(path.relative_to(root))
    bad = []
    for path in files(root, {".cpp"}, ["tw"]):
        file = path.relative_to(root)
        layer = file.parts[1]
        for key, line, private in functions(path):
            for header in declared.get(key, []) if private else []:
                owner, impl = header.parts[1], header.parts[2] == "impl"
                if owner == layer or (owner in allowed.get(layer, ()) and not impl):
                    bad.append(f"{file}:{line}: '{key[1]}' hides that of {header}")
    return bad


def main():
    root = root_from_argv()
    allowed, bad = read_layers(root)
    edges, bad_forms = read_includes(root)
    bad += bad_forms + check_edges(allowed, edges) + find_cycle(edges) + check_cmake(root, allowed)
    bad += check_tests(root) + check_namesakes(root, allowed)
    finish("layers", bad)


main()
