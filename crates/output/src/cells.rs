//! The values of a column, gathered for a batch of Arrow or a row group of Parquet.

pub(crate) mod fast;

use serde_json::Value;

use crate::columns::{ColumnType, entry_value};

/// A column, or a field of the entries of its lists.
#[derive(Debug, PartialEq)]
pub(crate) struct Cells {
    pub(crate) content: ColumnType,
    pub(crate) values: Values,
    /// Of each row, or entry of the lists around: whether it has a value, that is one of the column's type.
    pub(crate) are_there: Vec<bool>,
}

/// The values that are there.
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

    /// Adds what `push` adds, or null.
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
