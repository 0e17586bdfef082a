//! Arrow: the frames of one kind as record batches, with the columns of Parquet.

mod cells;

use std::io;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Fields, Schema, SchemaRef};
use sizeleak_frame::Frame;

use self::cells::{Cells, field};
use crate::columns::{Column, MAX_BYTES, MAX_ROWS, cell, columns};
use crate::flow_names::FlowNames;
use crate::json;

/// Gathers the frames of one kind until they fill a batch.
pub struct RecordBatchBuilder {
    kind: String,
    schema: SchemaRef,
    columns: Vec<(Column, Cells)>,
    names: FlowNames,
    rows: usize,
    bytes: usize,
}

impl RecordBatchBuilder {
    /// A builder without rows; `None` if frames of this kind have no columns.
    pub fn new(kind: &str) -> Option<Self> {
        let columns = columns(kind)?;
        let fields: Fields = columns.iter().map(|column| field(column.name, column.content)).collect();
        Some(Self {
            kind: kind.to_owned(),
            schema: Arc::new(Schema::new(fields)),
            columns: columns.into_iter().map(|column| (column, Cells::of(column.content))).collect(),
            names: FlowNames::default(),
            rows: 0,
            bytes: 0,
        })
    }

    /// The columns of every batch.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Adds the rows of a frame of the kind; remembers what others say of its flow.
    pub fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.names.observe(frame);
        if frame.kind() != self.kind {
            return Ok(());
        }
        let Self { columns, names, rows, bytes, .. } = self;
        json::column_rows(frame, names, |row, wire| {
            *rows += 1;
            let cells = columns.iter_mut();
            *bytes += cells.map(|(column, cells)| cells.push(cell(row, column.name), wire)).sum::<usize>();
        })
    }

    /// Whether the rows fill a batch: as many rows or about as many bytes as a row group of a Parquet file.
    pub fn is_full(&self) -> bool {
        self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The rows gathered so far, as a batch. The builder has none afterwards.
    pub fn take_batch(&mut self) -> Result<RecordBatch, ArrowError> {
        (self.rows, self.bytes) = (0, 0);
        let arrays = self.columns.iter_mut().map(|(_, cells)| cells.take()).collect::<Result<_, _>>()?;
        RecordBatch::try_new(self.schema(), arrays)
    }
}

#[cfg(test)]
mod tests;
