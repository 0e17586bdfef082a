//! Parquet: the frames of one kind as typed columns: those of CSV, times as timestamps, and lists whole.
//!
//! Rows are buffered until they fill a row group, so memory is bounded. The index of the groups is written last: the
//! output need not be seekable, but only a finished file can be read.

mod answers;
mod levels;

use std::io::{self, Write};
use std::sync::Arc;

use sizeleak_frame::Frame;

use self::levels::{Place, write_column};
use crate::KindSelection;
use crate::columns::{Column, ColumnType, columns, typed_name};
use crate::flow_names::FlowNames;
use crate::rows::Rows;
pub use answers::read_parquet_answers;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

pub(crate) struct ParquetFile<W: Write + Send> {
    /// Those of the next row group.
    rows: Rows,
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
        Ok(Self { rows: Rows::new(columns), file: Some(file.map_err(fault)?) })
    }

    pub(crate) fn write(&mut self, frame: &Frame, names: &FlowNames) -> io::Result<()> {
        self.rows.add(frame, names)?;
        if self.rows.is_full() { self.end_group() } else { Ok(()) }
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if !self.rows.is_empty() {
            self.end_group()?;
        }
        self.file.take().map_or(Ok(()), |file| file.close().map(drop).map_err(fault))
    }

    fn end_group(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(io::Error::other("the file is finished")) };
        let written = write_group(file, &mut self.rows);
        // After a failure all later offsets would be wrong.
        if written.is_err() {
            self.file = None;
        }
        written.map_err(fault)
    }
}

fn write_group<W: Write + Send>(file: &mut SerializedFileWriter<W>, rows: &mut Rows) -> Result<()> {
    let mut group = file.next_row_group()?;
    for cells in rows.take() {
        write_column(&cells, &vec![Place::ROW; cells.are_there.len()], &mut group)?;
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
