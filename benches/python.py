#!/usr/bin/env python3
"""Reads the records of a capture with the program, the package and other tools, in turn: python.py CAPTURE [ROUNDS]

Needs the package, nfstream and pyshark with tshark; PROGRAM=FILE is another program. The last two get the first part of the
capture, because they would take minutes: rates are compared. `benches/compare.sh` makes captures."""
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import pyarrow as pa
import sizeleak

GATEWAY, PACKETS = "192.168.1.20", 100_000
CAPTURE, ROUNDS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5


def program(*output):
    command = [os.environ.get("PROGRAM", "sizeleak"), "run", CAPTURE, "--gateway", GATEWAY, "--kind", "record", "-q"]
    subprocess.run([*command, *output], check=True)


def package():
    return sum(batch.num_rows for batch in sizeleak.records(CAPTURE, gateway=GATEWAY))


def nfstream(part):
    from nfstream import NFStreamer

    return sum(1 for _ in NFStreamer(part, n_meters=1))


def pyshark(part):
    import pyshark

    with pyshark.FileCapture(part, display_filter="tls.record.length", keep_packets=False) as packets:
        return sum(1 for _ in packets)


def main():
    with tempfile.TemporaryDirectory() as folder:
        part = os.path.join(folder, "part.pcap")
        subprocess.run(["editcap", "-r", CAPTURE, part, f"1-{PACKETS}"], check=True)
        parquet = os.path.join(folder, "records.parquet")
        measured = {
            "program, frames": (lambda: program("--format", "frames", "-o", "/dev/null"), CAPTURE),
            "program, Parquet": (lambda: program("-o", parquet), CAPTURE),
            "package": (package, CAPTURE),
            "nfstream": (lambda: nfstream(part), part),
            "pyshark": (lambda: pyshark(part), part),
        }
        times = {name: [] for name in measured}
        for _ in range(ROUNDS):
            for name, (read, _) in measured.items():
                start = time.perf_counter()
                read()
                times[name].append(time.perf_counter() - start)
        for name, (_, file) in measured.items():
            seconds = statistics.median(times[name])
            print(f"{name:18} {seconds:8.2f} s {os.path.getsize(file) / seconds / 1e6:10.1f} MB/s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process {peak:.0f} MB, Arrow's {pa.total_allocated_bytes() / 1e6:.1f} MB at the end")


main()
