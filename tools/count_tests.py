#!/usr/bin/env python3
"""Prints "PASSED FAILED" of a ctest run in a build folder: count_tests.py BUILD_DIR EXIT_STATUS.

Reads ctest.xml, and for a GoogleTest program its reports/<name>.xml, so that cases are counted and
not programs. A program that fails without a failed case (a crash, a leak) is one failure, and so is
a ctest that fails on its own (no test was found)."""
import pathlib
import sys
import xml.etree.ElementTree as xml


def count_cases(report):
    """(passed, failed) of a GoogleTest report; skipped and disabled cases are neither."""
    cases = xml.parse(report).getroot().findall(".//testcase")
    failed = sum(case.find("failure") is not None for case in cases)
    ran = sum(case.get("result") == "completed" for case in cases)
    return ran - failed, failed


def count(folder, status):
    passed = failed = 0
    if not (folder / "ctest.xml").exists():
        return 0, 1
    for test in xml.parse(folder / "ctest.xml").getroot().findall("testcase"):
        ok, report = test.get("status") == "run", folder / "reports" / f"{test.get('name')}.xml"
        good, bad = count_cases(report) if report.exists() else (int(ok), int(not ok))
        passed += good
        failed += bad if ok or bad else 1
    return passed, failed or int(status != 0)


print(*count(pathlib.Path(sys.argv[1]), int(sys.argv[2])))
