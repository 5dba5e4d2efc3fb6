"""Rows of bench/schema.json from times of blocks."""
import datetime
import os
import statistics
import subprocess

import timing

# bytes a second, and operations a second by type, that the maker states
DATASHEET = {"NVIDIA H200": (4.8e12, {"bf16": 989e12, "f16": 989e12, "f32": 67e12})}


def asked(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def smi(fields):
    return asked(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]).split("\n")[0]


def clocks():
    """"1980 MHz, 3201 MHz, 45 C", of processors and memory; "" without a GPU."""
    said = smi("clocks.sm,clocks.mem,temperature.gpu")
    return f"{said} C" if said else ""


def about(torch, device, library):
    """What all rows of a run share."""
    gpu = device.name.startswith("cuda")
    name = torch.cuda.get_device_name() if gpu else "CPU"
    driver = smi("driver_version") if gpu else os.uname().release
    return {"device": name, "driver": f"NVIDIA {driver}" if gpu else driver,
            "toolchain": f"tilewright {library.version()}, torch {torch.__version__}",
            "date": datetime.date.today().isoformat(), "commit": commit()}


def commit():
    said = os.environ.get("TW_COMMIT") or asked(["git", "rev-parse", "--short", "HEAD"])
    return said or "unknown"


def shape_text(step):
    axes = ",".join(f"{axis}={extent}" for axis, extent in sorted(step.extents.items()))
    return " ".join([axes, *(f"{k}={v}" for k, v in sorted(step.choices.items()))])


def program_text(steps):
    """"row_reduce m=64,n=32 op=sum": calls as `tilewright explain` takes them, with ; between."""
    return "; ".join(f"{step.kernel} {shape_text(step)}" for step in steps)


def of_times(shared, times, peers, bytes_, flops):
    """A row for each peer: how long ours, it and a copy of the same bytes took."""
    ours, us = times["ours"], statistics.median(times["ours"])
    copy = statistics.median(times["copy"]) if "copy" in times else 0.0
    rate, operations = DATASHEET.get(shared["device"], (0, {}))
    peak = operations.get(shared["dtype"], 0)
    limits = {"bandwidth": bytes_ / rate * 1e6 if rate else 0.0,
              "arithmetic": flops / peak * 1e6 if peak else 0.0}
    held = max(limits, key=limits.get) if flops else "bandwidth"
    rows = []
    for peer, said in peers.items():
        ratios = [p / o for p, o in zip(times[peer], ours)]
        rows.append(shared | {
            "threads": 1, "time_us": us, "ci95": timing.interval(ratios), "peer": peer,
            "peer_about": said, "peer_us": statistics.median(times[peer]),
            "ratio": statistics.median(ratios), "bytes": bytes_, "flops": flops,
            "limit_us": limits[held], "fraction": limits[held] / us,
            "ceiling_fraction": copy / us, "copy_us": copy, "bound": held, "blocks": len(ours),
            "disturbed": 0})
    return rows
