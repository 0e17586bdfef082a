//! The levels that say where a value of a column is null and where a list begins (as in Dremel;
//! <https://parquet.apache.org/docs/file-format/nestedencoding/>).

use std::io::Write;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::SerializedRowGroupWriter;

use crate::cells::{Cells, Values};
use crate::columns::ColumnType;

/// Where a value of a column may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// How many of the fields around it are there.
    definition: i16,
    /// In which of the lists around it an entry begins; 0 begins a row.
    repetition: i16,
    /// Not if it stands for a list around it that is null or empty.
    is_open: bool,
}

impl Place {
    pub(super) const ROW: Self = Self { definition: 0, repetition: 0, is_open: true };
}

/// Writes a column that has a value or null at each of these places that is open.
pub(super) fn write_column<W: Write + Send>(
    cells: &Cells,
    places: &[Place],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<()> {
    write_field(cells, places, 0, false, group)
}

/// The same for a field within so many lists; the keys of a map are never null.
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
