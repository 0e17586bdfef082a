"""The rows that tasks exchange, and the proof that they arrive in order.

A row is a segment, as it stands in a stream of `sizeleak` (docs/frames.md), behind the description of its flow where
that is new in its capture. So the rows of a gateway, one behind the other, are a stream but for its first and last
frame. The columns of KEY order all rows totally.
"""

from functools import reduce
from itertools import pairwise

import pyarrow
import pyarrow.compute

from program import Fault

# `time_ns` is the greatest time so far in the capture: sorted by it, segments have the order in which `capture` merges
# files. `file` is the place of a capture among all, `sequence` that of a segment in its capture.
KEY = ("point", "gateway", "time_ns", "file", "sequence")

# What stands in the place of the gateway in a row that reports on a capture; no address is empty.
REPORT = ""

COLUMNS = "point string, gateway string, time_ns bigint, file bigint, sequence bigint, frames binary"

SCHEMA = pyarrow.schema(
    [
        pyarrow.field("point", pyarrow.string(), nullable=False),
        pyarrow.field("gateway", pyarrow.string(), nullable=False),
        pyarrow.field("time_ns", pyarrow.int64(), nullable=False),
        pyarrow.field("file", pyarrow.int64(), nullable=False),
        pyarrow.field("sequence", pyarrow.int64(), nullable=False),
        pyarrow.field("frames", pyarrow.binary(), nullable=False),
    ]
)

# A batch is passed on once it holds about this many bytes, so that memory does not depend on the length of segments.
BATCH_BYTES = 4 << 20


class RowBatcher:
    """Collects rows into batches."""

    def __init__(self):
        self.rows = []
        self.bytes = 0

    def add(self, row):
        """Adds a row, a tuple in the order of SCHEMA."""
        self.rows.append(row)
        self.bytes += len(row[-1])

    def is_full(self):
        """Whether the batch is to be taken."""
        return self.bytes >= BATCH_BYTES or len(self.rows) >= 10_000

    def take(self):
        """The batch; the next one is empty."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(SCHEMA)
        arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        self.rows, self.bytes = [], 0
        return pyarrow.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def groups_in_order(batches):
    """Pairs of (point, gateway) and rows of that group, a part of a batch. All rows of a group follow each other.

    Raises a fault at the first row that is not behind the one before it. Spark sorts; an engine that runs the same job
    and does not would make wrong commands of the right number of rows.
    """
    before = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        first, last = key_of(batch, 0), key_of(batch, batch.num_rows - 1)
        if before is not None and first <= before or not is_ascending(batch):
            raise Fault(
                f"rows of {first[0]}, gateway {first[1] or 'none'}, are not in order: this engine does not keep what "
                "`sortWithinPartitions` has sorted; nothing was written"
            )
        before = last
        for start, end in group_bounds(batch):
            yield key_of(batch, start)[:2], batch.slice(start, end - start)


def key_of(batch, row):
    """The key of a row."""
    return tuple(batch.column(name)[row].as_py() for name in KEY)


def is_ascending(batch):
    """Whether each row is greater than the one before it."""
    columns = [neighbours(batch, name) for name in reversed(KEY)]
    greater, equal = pyarrow.compute.greater, pyarrow.compute.equal
    either, both = pyarrow.compute.or_, pyarrow.compute.and_
    ascending = greater(*columns[0])
    for column in columns[1:]:
        ascending = either(greater(*column), both(equal(*column), ascending))
    # Of one row there are no neighbours.
    return pyarrow.compute.all(ascending, min_count=0).as_py()


def group_bounds(batch):
    """Where the groups of a batch begin and end."""
    changes = [pyarrow.compute.not_equal(*neighbours(batch, name)) for name in KEY[:2]]
    starts = pyarrow.compute.indices_nonzero(reduce(pyarrow.compute.or_, changes)).to_pylist()
    bounds = [0, *(start + 1 for start in starts), batch.num_rows]
    return pairwise(bounds)


def neighbours(batch, name):
    """A column without its first value, and without its last one."""
    column = batch.column(name)
    return column.slice(1), column.slice(0, len(column) - 1)


def joined_frames(batch):
    """The frames of all rows, one behind the other, without a copy."""
    column = batch.column("frames")
    _, offsets, data = column.buffers()
    # Arrow's `binary` has offsets of 32 bits, `large_binary` of 64.
    offsets = memoryview(offsets).cast("B").cast("q" if column.type == pyarrow.large_binary() else "i")
    return memoryview(data)[offsets[column.offset] : offsets[column.offset + len(column)]]
