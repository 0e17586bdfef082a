//! Arrow: the frames of one kind as record batches, with the columns of Parquet.

use std::io;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray,
    StructArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use sizeleak_frame::Frame;

use crate::cells::{Cells, Rows, Values};
use crate::columns::{ColumnType, columns, typed_name};
use crate::flow_names::FlowNames;

pub struct RecordBatchBuilder {
    kind: String,
    schema: SchemaRef,
    names: FlowNames,
    rows: Rows,
}

impl RecordBatchBuilder {
    pub fn new(kind: &str) -> Option<Self> {
        let columns = columns(kind)?;
        let fields: Fields = columns.iter().map(|column| field(column.name, column.content)).collect();
        let (schema, names) = (Arc::new(Schema::new(fields)), FlowNames::default());
        Some(Self { kind: kind.to_owned(), schema, names, rows: Rows::new(columns) })
    }

    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    pub fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.names.observe(frame);
        if frame.kind() == self.kind { self.rows.add(frame, &self.names) } else { Ok(()) }
    }

    /// Whether the rows fill a batch: as many rows or about as many bytes as a row group of a Parquet file.
    pub fn is_full(&self) -> bool {
        self.rows.is_full()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows gathered so far, as a batch. The builder has none afterwards.
    pub fn take_batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let arrays = self.rows.take().iter().map(array).collect::<Result<_, _>>()?;
        RecordBatch::try_new(self.schema(), arrays)
    }
}

fn array(cells: &Cells) -> Result<ArrayRef, ArrowError> {
    Ok(match (&cells.values, cells.content) {
        (Values::Integers(values), ColumnType::Time) => {
            let times: TimestampNanosecondArray = with_nulls(cells, values.iter().copied()).collect();
            Arc::new(times.with_timezone("UTC"))
        }
        (Values::Integers(values), ColumnType::Unsigned) => {
            Arc::new(with_nulls(cells, values.iter().map(|bits| bits.cast_unsigned())).collect::<UInt64Array>())
        }
        (Values::Integers(values), _) => Arc::new(with_nulls(cells, values.iter().copied()).collect::<Int64Array>()),
        (Values::Floats(values), _) => Arc::new(with_nulls(cells, values.iter().copied()).collect::<Float64Array>()),
        (Values::Flags(values), _) => Arc::new(with_nulls(cells, values.iter().copied()).collect::<BooleanArray>()),
        (Values::Texts(texts), content) => {
            let bytes: BinaryArray = with_nulls(cells, texts.iter()).collect();
            if content == ColumnType::Bytes { Arc::new(bytes) } else { Arc::new(StringArray::try_from_binary(bytes)?) }
        }
        (Values::Lists { lengths, fields }, _) => return lists(cells, lengths, fields),
    })
}

fn with_nulls<T>(cells: &Cells, mut values: impl Iterator<Item = T>) -> impl Iterator<Item = Option<T>> {
    cells.are_there.iter().map(move |is_there| if *is_there { values.next() } else { None })
}

fn lists(cells: &Cells, lengths: &[usize], fields: &[(&str, Cells)]) -> Result<ArrayRef, ArrowError> {
    let fault = || ArrowError::SchemaError(format!("a list of {:?} has another type", cells.content));
    let lengths = with_nulls(cells, lengths.iter().copied());
    let offsets = OffsetBuffer::from_lengths(lengths.map(Option::unwrap_or_default));
    let nulls = Some(NullBuffer::from(cells.are_there.clone())).filter(|nulls| nulls.null_count() > 0);
    let mut arrays = fields.iter().map(|(_, field)| array(field)).collect::<Result<Vec<_>, _>>()?;
    Ok(match data_type(cells.content) {
        DataType::Map(entry, is_sorted) => {
            let DataType::Struct(fields) = entry.data_type() else { return Err(fault()) };
            let entries = StructArray::try_new(fields.clone(), arrays, None)?;
            Arc::new(MapArray::try_new(entry, offsets, entries, nulls, is_sorted)?)
        }
        DataType::List(element) => {
            let values: ArrayRef = match element.data_type() {
                DataType::Struct(fields) => Arc::new(StructArray::try_new(fields.clone(), arrays, None)?),
                _ => arrays.pop().ok_or_else(fault)?,
            };
            Arc::new(ListArray::try_new(element, offsets, values, nulls)?)
        }
        _ => return Err(fault()),
    })
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

fn field(name: &str, content: ColumnType) -> Field {
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
