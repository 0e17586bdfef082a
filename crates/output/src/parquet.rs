//! Parquet: the frames of one kind as typed columns: those of CSV, times as timestamps, and lists whole.
//!
//! Rows are buffered until they fill a row group, so memory is bounded. The index of the groups is written last: the
//! output need not be seekable, but only a finished file can be read.
//! Identifications are read again, as an archive holds them: of the columns that say what they may be, and when.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::{Field, Row};
use parquet::schema::types::{Type, TypePtr};
use sizeleak_frame::{Actions, Candidate, Command, FlowId, Frame, Identification};

use crate::KindSelection;
use crate::answers::AnswerSink;
use crate::cells::{Cells, Rows, Values};
use crate::columns::{Column, ColumnType, columns, typed_name};
use crate::flow_names::FlowNames;

pub(crate) struct ParquetFile<W: Write + Send> {
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
        write_field(&cells, &vec![Place::ROW; cells.are_there.len()], 0, false, &mut group)?;
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

fn schema(columns: &[Column]) -> Result<Type> {
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

/// Where a value of a column may be: the levels that say where it is null and where a list begins (as in Dremel;
/// <https://parquet.apache.org/docs/file-format/nestedencoding/>).
#[derive(Debug, Clone, Copy)]
struct Place {
    /// How many of the fields around it are there.
    definition: i16,
    /// In which of the lists around it an entry begins; 0 begins a row.
    repetition: i16,
    /// Not if it stands for a list around it that is null or empty.
    is_open: bool,
}

impl Place {
    const ROW: Self = Self { definition: 0, repetition: 0, is_open: true };
}

/// Writes a column, or a field within so many lists, that has a value or null at each of these places that is open; the
/// keys of a map are never null.
fn write_field<W: Write + Send>(
    cells: &Cells,
    places: &[Place],
    depth: i16,
    is_key: bool,
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<()> {
    let mut are_there = cells.are_there.iter();
    let mut is_there = |place: &Place| place.is_open && are_there.next().is_some_and(|is_there| *is_there);
    let Values::Lists { lengths, fields } = &cells.values else {
        let definition = |place: &Place| place.definition + i16::from(is_there(place) && !is_key);
        let definitions: Vec<i16> = places.iter().map(definition).collect();
        let repetitions: Vec<i16> = places.iter().map(|place| place.repetition).collect();
        return write_values(cells, &definitions, Some(&*repetitions).filter(|_| depth > 0), group);
    };
    let mut lengths = lengths.iter();
    let mut entries = Vec::new();
    for place in places {
        let length = if is_there(place) { lengths.next() } else { None };
        match length {
            // The list is there, and an entry of it.
            Some(length @ 1..) => {
                let first = Place { definition: place.definition + 2, ..*place };
                entries.push(first);
                entries.extend(std::iter::repeat_n(Place { repetition: depth + 1, ..first }, length - 1));
            }
            Some(0) => entries.push(Place { definition: place.definition + 1, is_open: false, ..*place }),
            None => entries.push(Place { is_open: false, ..*place }),
        }
    }
    let is_map = cells.content == ColumnType::Counts;
    let mut fields = fields.iter().enumerate();
    fields.try_for_each(|(at, (_, field))| write_field(field, &entries, depth + 1, is_map && at == 0, group))
}

fn write_values<W: Write + Send>(
    cells: &Cells,
    definitions: &[i16],
    repetitions: Option<&[i16]>,
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<()> {
    let fault = || ParquetError::General(format!("a column of {:?} has another type", cells.content));
    let mut column = group.next_column()?.ok_or_else(fault)?;
    let definitions = Some(definitions);
    match (column.untyped(), &cells.values) {
        (ColumnWriter::Int64ColumnWriter(writer), Values::Integers(values)) => {
            writer.write_batch(values, definitions, repetitions)
        }
        (ColumnWriter::DoubleColumnWriter(writer), Values::Floats(values)) => {
            writer.write_batch(values, definitions, repetitions)
        }
        (ColumnWriter::BoolColumnWriter(writer), Values::Flags(values)) => {
            writer.write_batch(values, definitions, repetitions)
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::Texts(texts)) => {
            let values: Vec<ByteArray> = texts.iter().map(|text| text.to_vec().into()).collect();
            writer.write_batch(&values, definitions, repetitions)
        }
        _ => Err(fault()),
    }?;
    column.close()
}

pub fn read_parquet_answers(file: File, sink: &mut dyn AnswerSink) -> Result<(), String> {
    let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
    for (row, number) in reader.get_row_iter(None).map_err(|error| error.to_string())?.zip(1_u64..) {
        let row = row.map_err(|error| error.to_string())?;
        let (gateway, service, answer) =
            identification(&row).ok_or_else(|| format!("row {number} is no identification"))?;
        sink.learn(answer.command.flow, gateway.as_deref(), service.as_deref());
        sink.add(answer.into());
    }
    Ok(())
}

fn identification(row: &Row) -> Option<(Option<String>, Option<String>, Identification)> {
    let field = |name: &str| row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field);
    let text = |name: &str| match field(name)? {
        Field::Str(text) => Some(text.clone()),
        _ => None,
    };
    let flow: FlowId = text("flow")?.parse().ok()?;
    let command = Command {
        // Earlier versions named columns of times with their unit.
        time_ns: integer(field("time").or_else(|| field("time_ns"))?)?,
        end_ns: integer(field("end").or_else(|| field("end_ns"))?)?,
        flow: flow.0,
        size: integer(field("size")?)?.cast_unsigned(),
        ..Command::default()
    };
    let candidates = match field("candidates")? {
        Field::ListInternal(list) => list.elements().iter().map(candidate).collect::<Option<Vec<_>>>()?,
        Field::Null => Vec::new(),
        _ => return None,
    };
    let answer = Identification { candidates: candidates.into(), ..Identification::unanswered(command) };
    Some((text("gateway"), text("service"), answer))
}

fn candidate(field: &Field) -> Option<Candidate> {
    let Field::Group(row) = field else { return None };
    let field = |name: &str| row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field);
    let number = |name: &str| match field(name)? {
        Field::Double(number) => Some(*number),
        Field::Float(number) => Some(f64::from(*number)),
        _ => None,
    };
    let counts = |(name, count): &(Field, Field)| match name {
        Field::Str(name) => Some((Arc::from(name.as_str()), u32::try_from(integer(count)?).ok()?)),
        _ => None,
    };
    let actions: Actions = match field("actions")? {
        Field::MapInternal(map) => map.entries().iter().map(counts).collect::<Option<Vec<_>>>()?.into(),
        Field::Null => Actions::default(),
        _ => return None,
    };
    Some(Candidate {
        actions,
        epsilon: field("epsilon").and_then(integer)?,
        probability: number("probability")?,
        // Older files lack it.
        likelihood: number("likelihood"),
    })
}

fn integer(field: &Field) -> Option<i64> {
    match field {
        Field::Long(number) => Some(*number),
        Field::ULong(number) => Some(number.cast_signed()),
        Field::Int(number) => Some(i64::from(*number)),
        Field::UInt(number) => Some(i64::from(*number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
