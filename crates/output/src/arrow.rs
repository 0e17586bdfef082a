//! Arrow: the frames of one kind as record batches, with the columns of Parquet.

use std::io;
use std::mem::take;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampNanosecondBuilder,
    UInt64Builder,
};
use arrow_array::{ArrayRef, ListArray, MapArray, RecordBatch, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serde_json::Value;
use sizeleak_frame::Frame;

use crate::columns::{Column, ColumnType, MAX_BYTES, MAX_ROWS, cell, columns, entry_value, typed_name};
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

/// A column, or a field of a struct in one.
enum Cells {
    Times(TimestampNanosecondBuilder),
    Unsigned(UInt64Builder),
    Signed(Int64Builder),
    Floats(Float64Builder),
    Flags(BooleanBuilder),
    Texts(StringBuilder),
    Bytes(BinaryBuilder),
    /// Lists, or maps as lists of their entries.
    Lists(Lists),
}

/// The entries of all lists of a column, one after another.
pub(super) struct Lists {
    content: ColumnType,
    /// How many entries each list has; a list that is null has none.
    lengths: Vec<usize>,
    are_there: Vec<bool>,
    /// The fields of the entries by their names, which are empty where an entry is not a struct.
    fields: Vec<(&'static str, Cells)>,
}

impl Cells {
    pub(super) fn of(content: ColumnType) -> Self {
        let fields = match content {
            ColumnType::Time => return Self::Times(TimestampNanosecondBuilder::new().with_timezone("UTC")),
            ColumnType::Unsigned => return Self::Unsigned(UInt64Builder::new()),
            ColumnType::Signed => return Self::Signed(Int64Builder::new()),
            ColumnType::Float => return Self::Floats(Float64Builder::new()),
            ColumnType::Flag => return Self::Flags(BooleanBuilder::new()),
            ColumnType::Text => return Self::Texts(StringBuilder::new()),
            ColumnType::Bytes => return Self::Bytes(BinaryBuilder::new()),
            ColumnType::Texts => vec![("", Self::of(ColumnType::Text))],
            ColumnType::Counts => vec![("", Self::of(ColumnType::Text)), ("", Self::of(ColumnType::Unsigned))],
            ColumnType::Structs(fields) => fields.iter().map(|(name, content)| (*name, Self::of(*content))).collect(),
        };
        Self::Lists(Lists { content, lengths: Vec::new(), are_there: Vec::new(), fields })
    }

    /// Adds the value of a row, null if it has another type; `wire` are its captured bytes. Returns about how many bytes
    /// of memory that takes.
    pub(super) fn push(&mut self, value: Option<&Value>, wire: &[u8]) -> usize {
        match self {
            Self::Times(times) => times.append_option(value.and_then(Value::as_i64)),
            Self::Unsigned(numbers) => numbers.append_option(value.and_then(Value::as_u64)),
            Self::Signed(numbers) => numbers.append_option(value.and_then(Value::as_i64)),
            Self::Floats(numbers) => numbers.append_option(value.and_then(Value::as_f64)),
            Self::Flags(flags) => flags.append_option(value.and_then(Value::as_bool)),
            Self::Texts(texts) => {
                let text = value.and_then(Value::as_str);
                texts.append_option(text);
                return size_of::<i32>() + text.map_or(0, str::len);
            }
            Self::Bytes(bytes) => {
                bytes.append_option(value.map(|_| wire));
                return size_of::<i32>() + wire.len();
            }
            Self::Lists(lists) => return lists.push(value),
        }
        size_of::<i64>()
    }

    pub(super) fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Times(times) => Arc::new(times.finish()),
            Self::Unsigned(numbers) => Arc::new(numbers.finish()),
            Self::Signed(numbers) => Arc::new(numbers.finish()),
            Self::Floats(numbers) => Arc::new(numbers.finish()),
            Self::Flags(flags) => Arc::new(flags.finish()),
            Self::Texts(texts) => Arc::new(texts.finish()),
            Self::Bytes(bytes) => Arc::new(bytes.finish()),
            Self::Lists(lists) => return lists.take(),
        })
    }
}

impl Lists {
    fn push(&mut self, value: Option<&Value>) -> usize {
        let (length, bytes) = match value {
            Some(Value::Array(entries)) => {
                (entries.len(), entries.iter().map(|entry| self.push_entry(None, entry)).sum())
            }
            Some(Value::Object(map)) => {
                let entries = map.iter();
                (map.len(), entries.map(|(name, count)| self.push_entry(Some(&name.as_str().into()), count)).sum())
            }
            _ => (0, 0),
        };
        self.lengths.push(length);
        self.are_there.push(matches!(value, Some(Value::Array(_) | Value::Object(_))));
        bytes + size_of::<i32>()
    }

    fn push_entry(&mut self, key: Option<&Value>, entry: &Value) -> usize {
        let content = self.content;
        let fields = self.fields.iter_mut().enumerate();
        fields.map(|(at, (name, cells))| cells.push(entry_value(content, key, entry, name, at), &[])).sum()
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        let offsets = OffsetBuffer::from_lengths(take(&mut self.lengths));
        let nulls = Some(NullBuffer::from(take(&mut self.are_there))).filter(|nulls| nulls.null_count() > 0);
        let mut arrays = self.fields.iter_mut().map(|(_, cells)| cells.take()).collect::<Result<Vec<_>, _>>()?;
        Ok(match data_type(self.content) {
            DataType::Map(entry, is_sorted) => {
                let DataType::Struct(fields) = entry.data_type() else { return Err(self.fault()) };
                let entries = StructArray::try_new(fields.clone(), arrays, None)?;
                Arc::new(MapArray::try_new(entry, offsets, entries, nulls, is_sorted)?)
            }
            DataType::List(element) => {
                let values: ArrayRef = match (element.data_type(), arrays.pop()) {
                    (DataType::Struct(fields), last) => {
                        arrays.extend(last);
                        Arc::new(StructArray::try_new(fields.clone(), arrays, None)?)
                    }
                    (_, Some(only)) => only,
                    (_, None) => return Err(self.fault()),
                };
                Arc::new(ListArray::try_new(element, offsets, values, nulls)?)
            }
            _ => return Err(self.fault()),
        })
    }

    fn fault(&self) -> ArrowError {
        ArrowError::SchemaError(format!("a list of {:?} has another type", self.content))
    }
}

/// The type of a column, as readers of Parquet derive it from the file's schema.
fn data_type(content: ColumnType) -> DataType {
    match content {
        ColumnType::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        ColumnType::Unsigned => DataType::UInt64,
        ColumnType::Signed => DataType::Int64,
        ColumnType::Float => DataType::Float64,
        ColumnType::Flag => DataType::Boolean,
        ColumnType::Text => DataType::Utf8,
        ColumnType::Bytes => DataType::Binary,
        ColumnType::Texts => DataType::List(Arc::new(Field::new("element", DataType::Utf8, true))),
        ColumnType::Counts => {
            DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entry_fields(content)), false)), false)
        }
        ColumnType::Structs(_) => {
            DataType::List(Arc::new(Field::new("element", DataType::Struct(entry_fields(content)), false)))
        }
    }
}

pub(super) fn field(name: &str, content: ColumnType) -> Field {
    Field::new(typed_name(name, content), data_type(content), true)
}

fn entry_fields(content: ColumnType) -> Fields {
    match content {
        ColumnType::Counts => {
            Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::UInt64, true)])
        }
        ColumnType::Structs(fields) => fields.iter().map(|(name, content)| field(name, *content)).collect(),
        _ => Fields::empty(),
    }
}

#[cfg(test)]
mod tests;
