//! Parquet: the frames of one kind as typed columns: those of CSV, times as timestamps, and lists whole.
//!
//! Rows are buffered until they fill a row group, so memory is bounded. The index of the groups is written last: the
//! output need not be seekable, but only a finished file can be read.

mod answers;
mod field;

use std::io::{self, Write};
use std::sync::Arc;

use sizeleak_frame::Frame;

use self::field::{Field, without_candidates};
use crate::columns::{Column, ColumnType, MAX_BYTES, MAX_ROWS, cell, columns, typed_name};
use crate::flow_names::FlowNames;
use crate::{KindSelection, json};
pub use answers::read_parquet_answers;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

/// The column of most of what answers hold.
const CANDIDATES: &str = "candidates";

pub(crate) struct ParquetFile<W: Write + Send> {
    /// The columns with the values of the next row group.
    columns: Vec<(Column, Field)>,
    rows: usize,
    bytes: usize,
    /// `None` once it is finished.
    file: Option<SerializedFileWriter<W>>,
}

impl<W: Write + Send> ParquetFile<W> {
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
        Ok(Self {
            columns: columns.into_iter().map(|column| (column, Field::column(column.content))).collect(),
            rows: 0,
            bytes: 0,
            file: Some(file.map_err(fault)?),
        })
    }

    pub(crate) fn write(&mut self, frame: &Frame, names: &FlowNames) -> io::Result<()> {
        let apart = without_candidates(frame);
        let (frame, candidates) = apart.as_ref().map_or((frame, None), |(row, list)| (row, Some(*list)));
        let Self { columns, rows, bytes, .. } = self;
        json::column_rows(frame, names, |row, wire| {
            for (column, field) in &mut *columns {
                let pushed = candidates.filter(|_| column.name == CANDIDATES).and_then(|it| field.push_candidates(it));
                *bytes += pushed.unwrap_or_else(|| field.push(cell(row, column.name), wire));
            }
            *rows += 1;
        })?;
        if self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES {
            self.end_group()?;
        }
        Ok(())
    }

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

fn write_group<W: Write + Send>(file: &mut SerializedFileWriter<W>, columns: &mut [(Column, Field)]) -> Result<()> {
    let mut group = file.next_row_group()?;
    for leaf in columns.iter_mut().flat_map(|(_, field)| field.leaves()) {
        let Some(mut writer) = group.next_column()? else { break };
        leaf.write(writer.untyped())?;
        writer.close()?;
    }
    group.close().map(drop)
}

fn fault(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

pub(super) fn schema(columns: &[Column]) -> Result<Type> {
    let fields = columns.iter().map(|column| field(column.name, column.content)).collect::<Result<_>>()?;
    Type::group_type_builder("frames").with_fields(fields).build()
}

fn field(name: &str, content: ColumnType) -> Result<TypePtr> {
    let (physical, logical) = match content {
        ColumnType::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
        ColumnType::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
        ColumnType::Signed => (Physical::INT64, Some(LogicalType::integer(64, true))),
        ColumnType::Float => (Physical::DOUBLE, None),
        ColumnType::Flag => (Physical::BOOLEAN, None),
        ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::Bytes => (Physical::BYTE_ARRAY, None),
        ColumnType::Texts => return list(name, field("element", ColumnType::Text)?),
        ColumnType::Structs(fields) => {
            let fields = fields.iter().map(|(name, content)| field(name, *content)).collect::<Result<_>>()?;
            return list(name, group("element", Repetition::REQUIRED, None, fields)?);
        }
        ColumnType::Counts => {
            let key = leaf("key", Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED)?;
            let entry = vec![key, field("value", ColumnType::Unsigned)?];
            let entries = group("key_value", Repetition::REPEATED, None, entry)?;
            return group(name, Repetition::OPTIONAL, Some(LogicalType::Map), vec![entries]);
        }
    };
    leaf(typed_name(name, content), physical, logical, Repetition::OPTIONAL)
}

fn leaf(name: &str, physical: Physical, logical: Option<LogicalType>, repetition: Repetition) -> Result<TypePtr> {
    let leaf = Type::primitive_type_builder(name, physical).with_logical_type(logical);
    leaf.with_repetition(repetition).build().map(Arc::new)
}

/// A list in the three levels that the format specifies.
fn list(name: &str, element: TypePtr) -> Result<TypePtr> {
    let entries = group("list", Repetition::REPEATED, None, vec![element])?;
    group(name, Repetition::OPTIONAL, Some(LogicalType::List), vec![entries])
}

fn group(name: &str, repetition: Repetition, logical: Option<LogicalType>, fields: Vec<TypePtr>) -> Result<TypePtr> {
    let group = Type::group_type_builder(name).with_repetition(repetition).with_logical_type(logical);
    group.with_fields(fields).build().map(Arc::new)
}

#[cfg(test)]
mod tests;
