//! Rows gathered column by column, until the values of their columns fill a batch of Arrow or a row group of Parquet.

mod fast;

use std::io;
use std::mem::replace;

use serde_json::Value;
use sizeleak_frame::{Candidate, Frame, Identification};

use crate::columns::{Column, ColumnType, cell, entry_value, rows};
use crate::flow_names::FlowNames;
use crate::{HexLength, json};

/// A column, or a field of the entries of its lists.
#[derive(Debug, PartialEq)]
pub(crate) struct Cells {
    pub(crate) content: ColumnType,
    pub(crate) values: Values,
    /// Of each row, or entry of the lists around: whether it has a value, that is one of the column's type.
    pub(crate) are_there: Vec<bool>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Values {
    /// Also unsigned ones, as their bits.
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Flags(Vec<bool>),
    Texts(Texts),
    /// Lists, or maps as lists of their entries.
    Lists {
        lengths: Vec<usize>,
        /// The fields of all entries by their names, which are empty where an entry is not a struct.
        fields: Vec<(&'static str, Cells)>,
    },
}

/// Texts or bytes, one after another.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Cells {
    pub(crate) fn new(content: ColumnType) -> Self {
        let named = |(name, content): &(&'static str, ColumnType)| (*name, Self::new(*content));
        let lists = |fields: &[_]| Values::Lists { lengths: Vec::new(), fields: fields.iter().map(named).collect() };
        let values = match content {
            ColumnType::Time | ColumnType::Unsigned | ColumnType::Signed => Values::Integers(Vec::new()),
            ColumnType::Float => Values::Floats(Vec::new()),
            ColumnType::Flag => Values::Flags(Vec::new()),
            ColumnType::Text | ColumnType::Bytes => Values::Texts(Texts::default()),
            ColumnType::Texts => lists(&[("", ColumnType::Text)]),
            ColumnType::Counts => lists(&[("", ColumnType::Text), ("", ColumnType::Unsigned)]),
            ColumnType::Structs(fields) => lists(fields),
        };
        Self { content, values, are_there: Vec::new() }
    }

    /// Adds the value of a row; `wire` are its captured bytes. Returns about how many bytes of memory that takes.
    pub(crate) fn push(&mut self, value: Option<&Value>, wire: &[u8]) -> usize {
        let content = self.content;
        self.push_with(|values| values.push(value?, content, wire))
    }

    fn push_with(&mut self, push: impl FnOnce(&mut Values) -> Option<usize>) -> usize {
        let bytes = push(&mut self.values);
        self.are_there.push(bytes.is_some());
        size_of::<bool>() + bytes.unwrap_or(0)
    }
}

impl Values {
    /// Adds a value; returns its size in bytes, `None` if it has another type.
    fn push(&mut self, value: &Value, content: ColumnType, wire: &[u8]) -> Option<usize> {
        match self {
            Self::Integers(_) => self.push_integer(value.as_i64().or_else(|| value.as_u64().map(u64::cast_signed))?),
            Self::Floats(_) => self.push_float(value.as_f64()?),
            Self::Flags(values) => {
                values.push(value.as_bool()?);
                Some(size_of::<bool>())
            }
            Self::Texts(_) if content == ColumnType::Bytes => self.push_text(wire),
            Self::Texts(_) => self.push_text(value.as_str()?.as_bytes()),
            Self::Lists { lengths, fields } => {
                let entries: Vec<(Option<Value>, &Value)> = match value {
                    Value::Array(entries) => entries.iter().map(|entry| (None, entry)).collect(),
                    Value::Object(map) => map.iter().map(|(name, count)| (Some(name.as_str().into()), count)).collect(),
                    _ => return None,
                };
                lengths.push(entries.len());
                let mut bytes = size_of::<usize>();
                for (key, entry) in &entries {
                    for (at, (name, cells)) in fields.iter_mut().enumerate() {
                        bytes += cells.push(entry_value(content, key.as_ref(), entry, name, at), &[]);
                    }
                }
                Some(bytes)
            }
        }
    }

    fn push_integer(&mut self, value: i64) -> Option<usize> {
        let Self::Integers(values) = self else { return None };
        values.push(value);
        Some(size_of::<i64>())
    }

    fn push_float(&mut self, value: f64) -> Option<usize> {
        let Self::Floats(values) = self else { return None };
        values.push(value);
        Some(size_of::<f64>())
    }

    fn push_text(&mut self, value: &[u8]) -> Option<usize> {
        let Self::Texts(Texts { bytes, ends }) = self else { return None };
        bytes.extend_from_slice(value);
        ends.push(bytes.len());
        Some(size_of::<usize>() + value.len())
    }
}

impl Texts {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = [0].iter().chain(&self.ends);
        begins.zip(&self.ends).filter_map(|(begin, end)| self.bytes.get(*begin..*end))
    }
}

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

    pub(crate) fn take(&mut self) -> Vec<Cells> {
        (self.count, self.bytes) = (0, 0);
        let columns = self.columns.iter_mut();
        columns.map(|(column, cells)| replace(cells, Cells::new(column.content))).collect()
    }
}

/// An identification as a row needs it besides the list of its candidates, of which it keeps the first; and that list.
fn without_candidates(frame: &Frame) -> Option<(Frame, &[Candidate])> {
    let Frame::Identification(answer) = frame else { return None };
    let first = answer.candidates.iter().take(1).cloned().collect();
    let row = Identification { candidates: first, ..Identification::clone(answer) };
    Some((row.into(), &answer.candidates))
}
