#!/usr/bin/env python3
"""Fails when tests/cases/README.md and the tests disagree: check_cases.py [ROOT].

Every row of every kind is mapped, and once; a row mapped to a test (`Suite.Name`) names one that
stands in tests/; every test of a suite `...Cases` is mapped."""
import re

from sources import blank, files, finish, root_from_argv

# How many rows the report log has of each kind.
KINDS = {"ATT": 7, "MM": 7, "BIG": 4, "CAST": 6, "NORM": 3, "RED": 7, "SORT": 4, "IDX": 6,
         "CONV": 3, "ONNX": 6, "QNT": 6, "PIPE": 4, "LANG": 4, "CACHE": 7, "PROC": 4, "COLL": 3,
         "TUNE": 5, "MOE": 3, "NUM": 2}
ROW = re.compile(r"^\| ([A-Z]+-\d\d) \|[^|]*\| ([^|]*) \|$", re.M)
NAMED = re.compile(r"`(\w+\.\w+)`")
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def main():
    root = root_from_argv()
    rows = ROW.findall((root / "tests/cases/README.md").read_text())
    ids = [row for row, _ in rows]
    wanted = [f"{kind}-{n:02}" for kind, count in KINDS.items() for n in range(1, count + 1)]
    bad = [f"{row}: has no line" for row in wanted if row not in ids]
    bad += [f"{row}: unknown or listed twice" for row in ids
            if row not in wanted or ids.count(row) > 1]
    tests = {f"{suite}.{name}" for path in files(root, {".cpp"}, ["tests"])
             for suite, name in TEST.findall(blank(path.read_text()))}
    mapped = {name for _, target in rows for name in NAMED.findall(target)}
    bad += [f"no such test: {name}" for name in sorted(mapped - tests)]
    bad += [f"{name}: is not in the table" for name in sorted(tests - mapped)
            if name.split(".")[0].endswith("Cases")]
    open_rows = [row for row, target in rows if "`" not in target]
    for kind in KINDS:
        missing = sum(row.startswith(f"{kind}-") for row in open_rows)
        print(f"{kind}: {KINDS[kind]} rows, without a test: {missing}")
    finish(f"cases: {sum('`' in target for _, target in rows)} of {len(rows)} rows are tests", bad)


main()
