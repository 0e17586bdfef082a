"""What a user must know of the results: damaged captures, and where they may differ from those of `sizeleak archive`.

Both are found by what stages noticed. What cannot be known in a task, because it is decided by another capture or by
the traffic of another gateway, is never silently different."""

# At most this many damaged captures are named; the results name all.
MAX_NAMED = 20

# Of the packets that wait for others, or of flows that are forgotten.
BY_OTHER_TRAFFIC = ("clock", "evicted", "gap")


def remarks(captures, gateways, damaged):
    """Sentences on the reports of captures and gateways, and on pairs of a damaged capture and what is wrong."""
    for path, fault in damaged[:MAX_NAMED]:
        yield f"{path}: {fault}"
    if len(damaged) > MAX_NAMED:
        yield f"and {len(damaged) - MAX_NAMED} more damaged captures; the folder `quarantine` of the results names all"
    silent = sorted({report["point"] for report in captures} - {report["point"] for report in gateways})
    if silent:
        yield f"no packet of {len(silent)} points, such as {silent[0]}, is from or to a gateway"
    fragments = [report["path"] for report in captures if "flow-filter: gap" in report["notices"]]
    if fragments:
        yield (
            f"fragments of IP packets are missing from {len(fragments)} captures, such as {fragments[0]}: where they "
            "are in the next capture, `sizeleak archive` joins them, and this job cannot"
        )
    between = [report["path"] for report in captures if report["joins_gateways"]]
    if between:
        yield (
            f"{len(between)} captures, such as {between[0]}, have flows between two gateways: a capture that does not "
            "hold their beginning may take the other end for the gateway"
        )
    back = [report["path"] for report in captures if report["goes_back"] and overlaps(report, captures)]
    if back:
        yield (
            f"times go back in {len(back)} captures that overlap with others, such as {back[0]}: there the order of "
            "segments may be another one than that of `sizeleak archive`"
        )
    waiting = [report for report in gateways if any(is_by_other_traffic(name) for name in report["notices"])]
    if waiting:
        first = waiting[0]
        yield (
            f"packets are missing, or times are odd, at {len(waiting)} gateways, such as {first['gateway']} of "
            f"{first['point']}: a reply that comes late there may be counted otherwise than by `sizeleak archive`, "
            "which measures waiting by the traffic of all gateways"
        )


def is_by_other_traffic(notice):
    """Whether traffic of other gateways matters for what was noticed."""
    return notice.partition(": ")[2] in BY_OTHER_TRAFFIC


def overlaps(report, captures):
    """Whether another capture of its point has segments in its time."""
    return any(
        other is not report
        and other["point"] == report["point"]
        and other["first_ns"] is not None
        and other["first_ns"] <= report["last_ns"]
        and report["first_ns"] <= other["last_ns"]
        for other in captures
    )
