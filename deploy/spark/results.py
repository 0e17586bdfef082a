"""The results of a run: checked, put in their places in a folder of the run's own, and published by renaming it."""

import json
import os
import shutil
import uuid
from pathlib import Path

import pyarrow
import pyarrow.parquet

from program import Fault


class Results:
    """The folder of results, which appears when it is whole."""

    def __init__(self, out):
        self.out = Path(os.path.abspath(out))
        if os.path.lexists(self.out):
            raise Fault(f"{self.out} exists: name a new folder; a run does not add to results")
        self.staging = self.out.with_name(f".{self.out.name}.{uuid.uuid4().hex}")
        self.whole = self.staging / "whole"
        self.parts = self.staging / "parts"

    def __enter__(self):
        for folder in (self.whole / "identifications", self.parts):
            folder.mkdir(parents=True)
        return self

    def __exit__(self, *_error):
        shutil.rmtree(self.staging, ignore_errors=True)

    def add_answers(self, gateways):
        """Moves the parts of gateways to their places, as `sizeleak archive` names them."""
        for report in gateways:
            address = report["gateway"].replace(":", "%3A")
            for part in report["parts"]:
                folder = self.whole / "identifications" / f"gateway={address}" / f"day={part['day']}"
                folder.mkdir(parents=True, exist_ok=True)
                place = folder / f"part-{report['point']}.parquet"
                if place.exists():
                    raise Fault(
                        f"{report['point']}, gateway {report['gateway']}, was processed twice: nothing was written"
                    )
                (self.parts / part["file"]).rename(place)

    def set_aside(self, damaged):
        """Writes the table of damaged captures, pairs of path and reason."""
        if damaged:
            folder = self.whole / "quarantine"
            folder.mkdir()
            paths, reasons = zip(*damaged, strict=True)
            table = pyarrow.table({"path": pyarrow.array(paths), "reason": pyarrow.array(reasons)})
            pyarrow.parquet.write_table(table, folder / "part-0.parquet", compression="zstd")

    def write_manifest(self, lines):
        """Writes a line of JSON for every capture and gateway."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.whole / "manifest.ndjson").write_text(text)

    def publish(self):
        """Makes the results appear."""
        try:
            self.whole.rename(self.out)
        except OSError as error:
            raise Fault(f"{self.out}: {error.strerror}: the results are given up") from error


def check_reports(captures, of_captures, of_gateways):
    """Checks that every capture was read, and that the second phase has read every segment that the first one made."""
    unread = {capture.path for capture in captures} - {report["path"] for report in of_captures}
    if unread or len(of_captures) != len(captures):
        raise Fault(f"of {len(captures)} captures {len(of_captures)} were reported: nothing was written")
    made, read = {}, {}
    for report in of_captures:
        for gateway, segments in report["segments"].items():
            key = (report["point"], gateway)
            made[key] = made.get(key, 0) + segments
    for report in of_gateways:
        key = (report["point"], report["gateway"])
        read[key] = read.get(key, 0) + report["segments"]
    for key in sorted(made.keys() | read.keys()):
        if made.get(key, 0) != read.get(key, 0):
            point, gateway = key
            raise Fault(
                f"{point}, gateway {gateway}: {made.get(key, 0)} segments were made of its captures, and "
                f"{read.get(key, 0)} arrived: nothing was written"
            )
