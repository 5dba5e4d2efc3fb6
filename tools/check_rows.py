#!/usr/bin/env python3
"""Fails when a committed row of times says what cannot be: check_rows.py [ROOT].

Of every row in bench/results that is one of bench/schema.json: it has a time, a limit and a
fraction, none of them 0 (as where the rates of a device are not known); no call takes less than the
least time possible (fraction <= 1), the fraction is limit over time, timed outputs were verified,
the ratio is within its interval, and errors are within their bounds."""
import json

from sources import finish, root_from_argv

CLOSE = 1e-6
POSITIVE = ("time_us", "limit_us", "fraction")
# Rows of checks and of phases have none of these.
OF_TIMES = {*POSITIVE, "kernel", "time_ci95", "ci95", "peer_us", "ratio", "ceiling_fraction"}
ALWAYS = ("verified", "max_err_over_bound", "ci95", "peer")


def missing(row):
    for key in POSITIVE:
        if key not in row:
            yield f"has no {key}"
        elif not row[key] > 0:
            yield f"{key} is {row[key]:g}"
    yield from (f"has no {key}" for key in ALWAYS if key not in row)


def faults(row):
    time, limit, fraction = (row[key] for key in ("time_us", "limit_us", "fraction"))
    if fraction > 1:
        yield f"fraction is {fraction:.3f}: {time:g} us where {limit:g} us are the least"
    if abs(fraction * time - limit) > CLOSE * limit:
        yield f"fraction is {fraction:.3f}, limit over time {limit / time:.3f}"
    if not row["verified"]:
        yield "was not verified"
    if row["max_err_over_bound"] > 1:
        yield f"its error is {row['max_err_over_bound']:g} times the bound"
    low, high = row["ci95"]
    if row["peer"] and not low <= row["ratio"] <= high:
        yield f"ratio {row['ratio']:g} is outside of {low:g} .. {high:g}"


def main():
    root = root_from_argv()
    bad, rows, largest = [], 0, 0.0
    for path in sorted((root / "bench/results").rglob("*.json*")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            row = json.loads(line) if line.strip() else {}
            if not OF_TIMES & row.keys():
                continue
            rows += 1
            largest = max(largest, row.get("fraction", 0))
            where = f"{path.relative_to(root)}:{number}: {row.get('kernel')} {row.get('shape')}"
            bad += [f"{where}: {fault}" for fault in list(missing(row)) or faults(row)]
    print(f"{rows} rows; largest fraction of the limit: {largest:.3f}")
    finish("rows", bad)


main()
