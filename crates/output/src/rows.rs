//! Rows gathered column by column, until they fill a batch of Arrow or a row group of Parquet.

use std::io;
use std::mem::replace;

use sizeleak_frame::Frame;

use crate::cells::Cells;
use crate::cells::fast::without_candidates;
use crate::columns::{Column, cell, rows};
use crate::flow_names::FlowNames;
use crate::{HexLength, json};

/// They fill a batch or row group once they are this many, or take about this many bytes.
pub(crate) const MAX_ROWS: usize = 1 << 16;
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// The column of most of what answers hold.
const CANDIDATES: &str = "candidates";

pub(crate) struct Rows {
    columns: Vec<(Column, Cells)>,
    count: usize,
    bytes: usize,
}

impl Rows {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        let columns = columns.into_iter().map(|column| (column, Cells::new(column.content)));
        Self { columns: columns.collect(), count: 0, bytes: 0 }
    }

    /// Adds the rows of a frame with the ends of its flow, and its captured bytes, which are no digits here.
    pub(crate) fn add(&mut self, frame: &Frame, names: &FlowNames) -> io::Result<()> {
        let apart = without_candidates(frame);
        let (frame, candidates) = apart.as_ref().map_or((frame, None), |(row, list)| (row, Some(*list)));
        let mut wire: Box<dyn Iterator<Item = &[u8]>> = match frame {
            Frame::Packets(batch) => Box::new(batch.iter().map(|packet| packet.data)),
            Frame::Segments(batch) => Box::new(batch.iter().map(|segment| segment.payload)),
            _ => Box::new(std::iter::empty()),
        };
        for (_, mut body) in json::rows(frame, HexLength::AtMost(0))? {
            names.add_to(frame, &mut body);
            let wire = wire.next().unwrap_or_default();
            for row in rows(&body) {
                self.count += 1;
                for (column, cells) in &mut self.columns {
                    let pushed =
                        candidates.filter(|_| column.name == CANDIDATES).and_then(|it| cells.push_candidates(it));
                    self.bytes += pushed.unwrap_or_else(|| cells.push(cell(row, column.name), wire));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The columns of all rows so far; there are none afterwards.
    pub(crate) fn take(&mut self) -> Vec<Cells> {
        (self.count, self.bytes) = (0, 0);
        let columns = self.columns.iter_mut();
        columns.map(|(column, cells)| replace(cells, Cells::new(column.content))).collect()
    }
}
