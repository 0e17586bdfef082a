"""Reads an HdrHistogram interval log by the package `hdrhistogram` and prints its intervals as JSON lines."""

import json
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 60_000_000_000, 3))
while (interval := reader.get_next_interval_histogram()) is not None:
    print(json.dumps({
        "tag": interval.get_tag(),
        "count": interval.get_total_count(),
        "p50": interval.get_value_at_percentile(50),
        "p99": interval.get_value_at_percentile(99),
        "max": interval.get_max_value(),
    }))
