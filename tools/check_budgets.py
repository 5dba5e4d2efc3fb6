#!/usr/bin/env python3
"""Fails when code outgrows its budget: check_budgets.py [ROOT]; prints sizes per layer.

Functions: nine of ten have at most 35 lines, none more than 80. Files: at most 500 lines. Lines: at
most 100 columns. A function whose body is one switch or table may be longer: a comment
`// budget: table, <reason>` on a line of its own just above or below its first line. A longer file
needs `// budget: file, <reason>` in its first ten lines. A marker that nothing needs is an error.
"""
import ast
import re

from sources import CXX, blank, files, finish, is_script, root_from_argv

P90, LONGEST, FILE, COLUMNS = 35, 80, 500, 100
TABLE = re.compile(r"\s*// budget: table, \S+")
WHOLE_FILE = re.compile(r"(//|#) budget: file, \S+")
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
LABEL = re.compile(r"\s*(public|private|protected)\s*:(?!:)")


def cxx_functions(text):
    """(first line, last line) of each function body outside other functions.

    Formatted text is assumed: a brace that opens a body, class or namespace follows a space."""
    text = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), blank(text))
    found, scopes, head, parens = [], [], 0, 0
    for match in re.finditer(r"[{}();]", text):
        at, c = match.start(), match[0]
        if c in "()":
            parens += 1 if c == "(" else -1
        elif c == "{":
            if label := LABEL.match(text, head, at):
                head = label.end()
            before = text[head:at]
            kind = "inner"
            if not in_function(scopes):
                kind = scope_kind(before, text[at - 1:at], parens)
            scopes.append((kind, head + len(before) - len(before.lstrip()), parens))
            if kind == "outer":
                head = at + 1
            parens = 0 if kind != "expression" else parens
        elif c == "}" and scopes:
            kind, start, parens = scopes.pop()
            if kind == "function":
                found.append((text.count("\n", 0, start) + 1, text.count("\n", 0, at) + 1))
            if kind in ("function", "outer"):
                head = at + 1
        elif c == ";" and parens == 0 and (not scopes or scopes[-1][0] == "outer"):
            head = at + 1
    return found


def in_function(scopes):
    return any(kind in ("function", "inner", "expression") for kind, _, _ in scopes)


def scope_kind(head, previous, parens):
    if parens > 0 or previous not in " \n" or re.search(r"=\s*$", head):
        return "expression"
    if re.search(r"\b(namespace|extern)\b[^()]*$", head):
        return "outer"
    if re.match(r"(class|struct|union|enum)\b", without_template(head)):
        return "outer"
    return "function" if "(" in head else "expression"


def without_template(head):
    """The head of a declaration after its template parameters."""
    head = head.lstrip()
    while head.startswith("template"):
        depth = 0
        for at, c in enumerate(head):
            depth += (c == "<") - (c == ">" and head[at - 1] != "-")
            if c == ">" and depth == 0:
                break
        head = head[at + 1:].lstrip()
    return head


def python_functions(text):
    return [(node.lineno, node.end_lineno) for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def functions(path, text):
    if path.suffix in (".h", ".cpp"):
        return cxx_functions(text)
    if path.suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        return python_functions(text)
    return []


def check_file(path, name, text):
    """Problems of one file, its function lengths, and what it excuses."""
    bad, lengths, excused = [], [], []
    lines = text.splitlines()
    marker = next((line for line in lines[:10] if WHOLE_FILE.match(line)), None)
    if len(lines) > FILE and not marker:
        bad.append(f"{name}: {len(lines)} lines; at most {FILE}")
    if marker and len(lines) <= FILE:
        bad.append(f"{name}: has a 'budget: file' marker it does not need")
    if path.suffix != ".def":
        bad += [f"{name}:{n}: {len(line)} columns; at most {COLUMNS}"
                for n, line in enumerate(lines, 1) if len(line) > COLUMNS]
    unused = {n for n, line in enumerate(lines, 1) if TABLE.match(line)}
    for first, last in functions(path, text):
        length = last - first + 1
        marks = {n for n in (first - 1, first, first + 1) if n in unused and length > LONGEST}
        unused -= marks
        if marks:
            excused.append(f"{name}:{first}: {length} lines: {lines[min(marks) - 1].strip()}")
        else:
            lengths.append(length)
            if length > LONGEST:
                bad.append(f"{name}:{first}: a function of {length} lines; at most {LONGEST}")
    bad += [f"{name}:{n}: a 'budget: table' marker that no long function needs" for n in unused]
    return bad, lengths, excused


def p90(lengths):
    return sorted(lengths)[(len(lengths) * 9 - 1) // 10] if lengths else 0


def main():
    root = root_from_argv()
    bad, excused, layers = [], [], {}
    scripts = [p for p in sorted(root.iterdir()) if p.is_file() and not p.suffix and is_script(p)]
    for path in scripts + files(root, CXX | {".py", ".cmake", ".txt", ".sh", ""}):
        name = path.relative_to(root)
        layer = "/".join(name.parts[:2]) if name.parts[0] == "tw" else name.parts[0]
        layer = layer if path not in scripts else "scripts"
        text = path.read_text()
        problems, lengths, excuses = check_file(path, name, text)
        bad += problems
        excused += excuses
        loc, all_lengths = layers.get(layer, (0, []))
        code = blank(text) if path.suffix in CXX else text
        layers[layer] = (loc + sum(bool(line.strip()) for line in code.splitlines()),
                         all_lengths + lengths)
    print(f"{'layer':14} {'code':>6} {'functions':>9} {'p90':>4} {'longest':>7}")
    everything = (sum(loc for loc, _ in layers.values()), sum((l for _, l in layers.values()), []))
    for layer, (loc, lengths) in [*sorted(layers.items()), ("all", everything)]:
        print(f"{layer:14} {loc:6} {len(lengths):9} {p90(lengths):4} {max(lengths, default=0):7}")
    print(*excused, sep="\n", end="\n" if excused else "")
    if p90(everything[1]) > P90:
        bad.append(f"nine of ten functions have up to {p90(everything[1])} lines; at most {P90}")
    finish("budgets", bad)


main()
