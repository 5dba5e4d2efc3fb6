#!/usr/bin/env python3
"""House rules that no compiler knows: lint.py [ROOT].

- Tests hold no literal tolerance: what is not exact is compared through check::bound. A formula of
  the host in double may use EXPECT_DOUBLE_EQ.
- No TODO without an issue number, no commented-out code, no `#if 0`.
- No `default:` in a switch over an enum: a new enumerator must break the build.
- No host: addresses only of well-known public sites, never the name of this machine.
"""
import platform
import re

from sources import CXX, blank, comments, files, finish, root_from_argv

NUMBER = r"[0-9]+\.?[0-9]*(?:e-?[0-9]+)?f?"
TOLERANCES = [
    (re.compile(r"\b(?:EXPECT|ASSERT)_NEAR\([^;]*,\s*" + NUMBER + r"\s*\)\s*[;<]"), "a literal"),
    (re.compile(r"\b(?:EXPECT|ASSERT)_FLOAT_EQ\b"), "a hidden 4 ulp"),
    (re.compile(r"\b(?:DoubleNear|FloatNear|FloatEq)\b"), "a matcher's"),
    (re.compile(r"[<>]=?\s*[0-9.]*e-[0-9]+f?\b"), "a literal"),
    (re.compile(r"_(?:LT|LE|GT|GE)\([^;]*,\s*[0-9.]*e-[0-9]+f?\s*\)"), "a literal"),
    (re.compile(r"\b(?:rtol|atol|places|delta)\s*=\s*[0-9]"), "a literal"),
]
OPEN_END = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))")
DEAD_CODE = re.compile(r"^(?:[\w:<>&*]+ )?[\w.:>-]+(?:\(.*\)| [-+*/|&]?= .*);$"
                       r"|^(?:return|if|for|while|else|switch)\b.*[;{]$|^[{}]+;?$")
CASE = re.compile(r"\bcase\s+(['\w-])|\bdefault\s*(:)(?!:)")
HOST = re.compile(r"https?://([\w.-]+)|\b(?:\d{1,3}\.){3}\d{1,3}\b")
PUBLIC = {"arxiv.org", "doi.org", "github.com", "www.apache.org", "dl.acm.org", "json-schema.org",
          "example.org", "www.w3.org"}
TEXT = CXX | {".py", ".md", ".json", ".txt", ".cmake", ".log", ".tw", ".sh", ""}


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def tolerances(name, text):
    for pattern, what in TOLERANCES:
        for match in pattern.finditer(text):
            yield f"{name}:{line_of(text, match.start())}: {what} tolerance; use check::bound"


def open_ends(name, lines):
    for n, line in lines:
        if OPEN_END.search(line):
            yield f"{name}:{n}: a TODO without the number of an issue"


def dead_code(name, text):
    for n, line in comments(text):
        source = text.splitlines()[n - 1]
        if "///" not in source and DEAD_CODE.match(line):
            yield f"{name}:{n}: commented-out code: {line}"
    for match in re.finditer(r"^[ \t]*#[ \t]*if[ \t]+0\b", text, re.M):
        yield f"{name}:{line_of(text, match.start())}: code under #if 0"


def enum_defaults(name, text):
    """`default:` is fine after `case 'x'` and `case 7`, which no compiler can count out."""
    over_enum = False
    for match in CASE.finditer(text):
        if match[2] and over_enum:
            yield f"{name}:{line_of(text, match.start())}: 'default:' in a switch over an enum"
        elif match[1]:
            over_enum = match[1].isalpha()


def hosts(name, text, machine):
    for match in HOST.finditer(text):
        if match[1] not in PUBLIC and match[0] not in ("127.0.0.1", "0.0.0.0"):
            yield f"{name}:{line_of(text, match.start())}: names the host {match[1] or match[0]}"
    if machine and re.search(rf"\b{re.escape(machine)}\b", text):
        yield f"{name}: names this machine"


def check(root, path):
    name, text = path.relative_to(root), path.read_text(errors="replace")
    if path.suffix not in CXX:
        yield from open_ends(name, enumerate(text.splitlines(), 1) if path.suffix == ".py" else [])
    else:
        yield from open_ends(name, comments(text))
        yield from dead_code(name, text)
        if name.parts[0] == "tw":
            yield from enum_defaults(name, blank(text, strings=False))
    if name.parts[0] == "tests" and path.suffix in (".h", ".cpp", ".py"):
        yield from tolerances(name, blank(text) if path.suffix != ".py" else text)
    machine = platform.node() if len(platform.node()) > 4 else ""
    yield from hosts(name, text, "" if machine in ("localhost", "debian") else machine)


def main():
    root = root_from_argv()
    # These two spell what they forbid.
    skip = {root / "tools/lint.py", root / "tests/tools/lint_test.py"}
    paths = [p for p in files(root, TEXT, ["tw", "tests", "bench", "examples", "tools", "python",
                                           "docs", ".ci", "cmake"]) if p not in skip]
    paths += [p for p in sorted(root.iterdir()) if p.is_file() and p.suffix in TEXT]
    finish("lint", [problem for path in paths for problem in check(root, path)])


main()
