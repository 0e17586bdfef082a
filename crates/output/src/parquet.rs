//! Parquet: the frames of one kind as typed columns, the same as in CSV.
//!
//! Rows are buffered until they fill a row group, so memory is bounded. The index of the groups is written last: the
//! output need not be seekable, but only a finished file can be read.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::Value;
use sizeleak_frame::Frame;

use crate::columns::{Column, ColumnType, cell, columns, rows, text};
use crate::flow_names::FlowNames;
use crate::{HexLength, KindSelection, json};

/// A row group is written once it has this many rows or about this many bytes.
const MAX_ROWS: usize = 1 << 16;
const MAX_BYTES: usize = 16 << 20;

/// Writes a Parquet file.
pub(crate) struct ParquetFile<W: Write + Send> {
    columns: Vec<ColumnBuffer>,
    rows: usize,
    bytes: usize,
    names: FlowNames,
    /// `None` once it is finished.
    file: Option<SerializedFileWriter<W>>,
}

/// A column of the next row group.
struct ColumnBuffer {
    column: Column,
    values: ColumnValues,
    /// 1 for each row with a value, 0 for others.
    levels: Vec<i16>,
}

enum ColumnValues {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Flags(Vec<bool>),
    Bytes(Vec<ByteArray>),
}

impl<W: Write + Send> ParquetFile<W> {
    /// A file of the one kind that is selected.
    pub(crate) fn new(selection: &KindSelection, output: W) -> io::Result<Self> {
        let columns = selection.only().and_then(columns).unwrap_or_default();
        let properties = WriterProperties::builder()
            // Readers look for a version here, to work around bugs of old writers.
            .set_created_by(concat!("sizeleak version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            // Its memory would grow with every page.
            .set_offset_index_disabled(true);
        let file = schema(&columns)
            .and_then(|schema| SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties.build())));
        let buffer =
            |column: Column| ColumnBuffer { column, values: ColumnValues::of(column.content), levels: Vec::new() };
        Ok(Self {
            columns: columns.into_iter().map(buffer).collect(),
            rows: 0,
            bytes: 0,
            names: FlowNames::default(),
            file: Some(file.map_err(fault)?),
        })
    }

    /// Observes a frame that is not selected but may describe others.
    pub(crate) fn observe(&mut self, frame: &Frame) {
        self.names.observe(frame);
    }

    /// Adds the rows of a frame.
    pub(crate) fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.observe(frame);
        // Captured bytes are stored raw, not as digits.
        let mut wire: Box<dyn Iterator<Item = &[u8]>> = match frame {
            Frame::Packets(batch) => Box::new(batch.iter().map(|packet| packet.data)),
            Frame::Segments(batch) => Box::new(batch.iter().map(|segment| segment.payload)),
            _ => Box::new(std::iter::empty()),
        };
        for (_, mut body) in json::rows(frame, HexLength::AtMost(0))? {
            self.names.add_to(frame, &mut body);
            let wire = wire.next().unwrap_or_default();
            for row in rows(&body) {
                self.bytes += self.columns.iter_mut().map(|buffer| buffer.push(row, wire)).sum::<usize>();
                self.rows += 1;
            }
            if self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Writes the last row group and the footer. Nothing can be written afterwards.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.end_group()?;
        }
        match self.file.take() {
            Some(file) => file.close().map(drop).map_err(fault),
            None => Ok(()),
        }
    }

    fn end_group(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(io::Error::other("the file is finished")) };
        (self.rows, self.bytes) = (0, 0);
        let written = write_group(file, &mut self.columns);
        // After a failure all later offsets would be wrong.
        if written.is_err() {
            self.file = None;
        }
        written.map_err(fault)
    }
}

fn write_group<W: Write + Send>(file: &mut SerializedFileWriter<W>, columns: &mut [ColumnBuffer]) -> Result<()> {
    let mut group = file.next_row_group()?;
    for buffer in columns {
        let Some(mut writer) = group.next_column()? else { break };
        buffer.write(writer.untyped())?;
        writer.close()?;
    }
    group.close().map(drop)
}

/// The columns as a Parquet schema; each may be null, as in a frame.
fn schema(columns: &[Column]) -> Result<Type> {
    let field = |column: &Column| {
        let (physical, logical) = match column.content {
            ColumnType::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            ColumnType::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
            ColumnType::Signed => (Physical::INT64, Some(LogicalType::integer(64, true))),
            ColumnType::Float => (Physical::DOUBLE, None),
            ColumnType::Flag => (Physical::BOOLEAN, None),
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Bytes => (Physical::BYTE_ARRAY, None),
        };
        let field = Type::primitive_type_builder(column.name, physical).with_logical_type(logical);
        field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_>>()?;
    Type::group_type_builder("frames").with_fields(fields).build()
}

impl ColumnValues {
    fn of(content: ColumnType) -> Self {
        match content {
            ColumnType::Time | ColumnType::Unsigned | ColumnType::Signed => Self::Integers(Vec::new()),
            ColumnType::Float => Self::Floats(Vec::new()),
            ColumnType::Flag => Self::Flags(Vec::new()),
            ColumnType::Text | ColumnType::Bytes => Self::Bytes(Vec::new()),
        }
    }

    /// Adds a value; returns its size in bytes, `None` if it has another type.
    fn push(&mut self, value: &Value, column: Column, wire: &[u8]) -> Option<usize> {
        match self {
            // The bits of an unsigned number: the logical type says how to read them.
            Self::Integers(values) => values.push(value.as_i64().or_else(|| value.as_u64().map(u64::cast_signed))?),
            Self::Floats(values) => values.push(value.as_f64()?),
            Self::Flags(values) => values.push(value.as_bool()?),
            Self::Bytes(values) => {
                let bytes = if column.content == ColumnType::Bytes { wire.to_vec() } else { text(value).into_bytes() };
                let length = bytes.len();
                values.push(bytes.into());
                return Some(size_of::<ByteArray>() + length);
            }
        }
        Some(size_of::<i64>())
    }
}

impl ColumnBuffer {
    /// Adds its value of a row; returns about how many bytes that takes.
    fn push(&mut self, row: &Value, wire: &[u8]) -> usize {
        let value = cell(row, self.column.name);
        let bytes = value.and_then(|value| self.values.push(&value, self.column, wire));
        self.levels.push(i16::from(bytes.is_some()));
        bytes.unwrap_or(0) + size_of::<i16>()
    }

    /// Writes and clears the buffer.
    fn write(&mut self, writer: &mut ColumnWriter<'_>) -> Result<()> {
        let levels = Some(&*self.levels);
        match (writer, &self.values) {
            (ColumnWriter::Int64ColumnWriter(writer), ColumnValues::Integers(values)) => {
                writer.write_batch(values, levels, None)
            }
            (ColumnWriter::DoubleColumnWriter(writer), ColumnValues::Floats(values)) => {
                writer.write_batch(values, levels, None)
            }
            (ColumnWriter::BoolColumnWriter(writer), ColumnValues::Flags(values)) => {
                writer.write_batch(values, levels, None)
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), ColumnValues::Bytes(values)) => {
                writer.write_batch(values, levels, None)
            }
            _ => Err(ParquetError::General(format!("{} has another type", self.column.name))),
        }?;
        self.values = ColumnValues::of(self.column.content);
        self.levels.clear();
        Ok(())
    }
}

/// The error of the output itself, if it is one.
fn fault(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests;
