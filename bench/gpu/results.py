"""Files of rows: FOLDER/SUITE.jsonl holds a row a line, those of bench/schema.json (times) or those
of checks: {"suite", "item", "ok", "says", "seconds", "device", "date", "commit"}. What could not be
done stands in FOLDER/SUITE.notes.jsonl: {"item", "missing"} or {"item", "failed"}."""
import json
import math
import statistics
import threading

STREAM_BYTES = 256e6  # from here on kernels that only stream are held against a copy
OF_COPY = 0.92
NOT_STREAMING = ("embedding", "index_add", "index_add_sorted", "gemm")
CELL = ("kernel", "shape", "dtype", "launch")


def read(path):
    if not path.exists():
        return []
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:  # the end of a run that was stopped
            continue
    return rows


class Store:
    """The files of one suite."""

    def __init__(self, folder, suite):
        self.lock = threading.Lock()
        self.path, self.notes_path = folder / f"{suite}.jsonl", folder / f"{suite}.notes.jsonl"

    def begin(self, resume):
        """Forgets notes, and rows unless the run is one that goes on."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = read(self.path) if resume else []
        self.path.write_text("".join(json.dumps(row) + "\n" for row in kept))
        self.notes_path.unlink(missing_ok=True)

    def add(self, rows):
        with self.lock, self.path.open("a") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))

    def note(self, item, kind, text):
        with self.lock, self.notes_path.open("a") as file:
            file.write(json.dumps({"item": item, kind: text}) + "\n")

    def rows(self):
        return read(self.path)

    def notes(self):
        return read(self.notes_path)

    def done(self):
        return {item_of(row) for row in self.rows()}


def item_of(row):
    if "item" in row:
        return row["item"]
    return " ".join([row["kernel"], row["shape"], row["dtype"],
                     *(["plain"] if row["launch"] == "plain" else [])])


def cells(rows):
    """Rows of times by what was timed, with the better peer's first."""
    groups = {}
    for row in rows:
        if "time_us" in row:
            groups.setdefault(tuple(row[key] for key in CELL), []).append(row)
    return [sorted(group, key=lambda r: r["ratio"]) for group in groups.values()]


def meets(cell):
    """At least the better peer's speed; or close to it where both are close to a copy's."""
    best = cell[0]
    near = best["copy_us"] / best["peer_us"] >= 0.93 and best["ceiling_fraction"] >= 0.93
    return best["ratio"] >= 1 or (best["ratio"] >= 0.97 and near)


def streams(cell):
    return cell[0]["bytes"] >= STREAM_BYTES and not cell[0]["kernel"].startswith(NOT_STREAMING)


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def wrong(row):
    return not row["verified"] if "verified" in row else not row["ok"]


def table_of_times(groups):
    lines = [f"{'kernel':52} {'dtype':5} {'us':>10} {'TB/s':>6} {'eager':>7} {'compile':>8} "
             f"{'of copy':>8}"]
    for cell in groups:
        best = cell[0]
        ratios = {row["peer"]: f"{row['ratio']:.2f}" for row in cell}
        marks = ("" if meets(cell) else " <") + ("" if best["verified"] else " WRONG")
        lines.append(f"{item_of(best).rsplit(' ', 1)[0]:52} {best['dtype']:5} "
                     f"{best['time_us']:10.1f} {best['bytes'] / best['time_us'] / 1e6:6.2f} "
                     f"{ratios.get('eager', '-'):>7} {ratios.get('compile', '-'):>8} "
                     f"{best['ceiling_fraction']:8.3f}{marks}")
    return lines


def summary_of_times(groups):
    """Figures that tools/show reads."""
    by_kernel = {}
    for cell in groups:
        by_kernel.setdefault(cell[0]["kernel"], []).append(cell[0]["ratio"])
    lines = [f"geomean {kernel} {geomean(ratios):.3f}" for kernel, ratios in by_kernel.items()]
    if by_kernel:
        lines.append(f"least geomean {min(geomean(r) for r in by_kernel.values()):.3f}")
    lines.append(f"cells: {len(groups)}, below the better peer: "
                 f"{sum(not meets(cell) for cell in groups)}")
    streaming = [cell[0]["ceiling_fraction"] for cell in groups if streams(cell)]
    if streaming:
        lines.append(f"streaming from 256 MB: {len(streaming)}, least share of a copy "
                     f"{min(streaming):.3f}, below {OF_COPY}: "
                     f"{sum(share < OF_COPY for share in streaming)}")
    return lines


def report(store, items):
    """Lines of a table; how many results are wrong, and which items are not done."""
    rows, notes = store.rows(), store.notes()
    groups = cells(rows)
    checks = [row for row in rows if "ok" in row]
    lines = table_of_times(groups) if groups else []
    lines += [f"{row['item']:52} {'right' if row['ok'] else 'WRONG'}  {row['says']}"
              for row in checks]
    lines += [f"{note['item']:52} missing: {note['missing']}" for note in notes
              if "missing" in note]
    lines += [f"{note['item']:52} FAILED: {note['failed']}" for note in notes if "failed" in note]
    left = [item for item in items if item not in store.done()]
    bad = sum(map(wrong, rows)) + sum("failed" in note for note in notes)
    lines += summary_of_times(groups) if groups else []
    if checks:
        lines.append(f"median of {statistics.median(row['seconds'] for row in checks):.3f} s "
                     f"over {len(checks)} checks")
    lines.append(f"{len(items) - len(left)} of {len(items)} items done, {len(left)} left, of which "
                 f"{sum('missing' in note for note in notes)} are missing in the library; "
                 f"{bad} wrong or failed")
    return lines, bad, left
