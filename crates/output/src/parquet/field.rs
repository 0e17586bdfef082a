//! The values of a column for the next row group, with the levels that say where a value is null and where a list begins
//! (as in Dremel; <https://parquet.apache.org/docs/file-format/nestedencoding/>).

mod fast;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use serde_json::Value;

pub(super) use self::fast::without_candidates;
use crate::columns::{ColumnType, entry_value};

pub(super) enum Field {
    Leaf(Leaf),
    /// A list, or a map as a list of its entries.
    List(List),
}

pub(super) struct Leaf {
    content: ColumnType,
    values: Values,
    /// For each value and each null, how many of the fields around it are there, itself included.
    definitions: Vec<i16>,
    /// For each of them, in which of the lists around it an entry begins; 0 begins a row. `None` outside lists.
    repetitions: Option<Vec<i16>>,
    /// Whether it is never null.
    is_required: bool,
}

enum Values {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Flags(Vec<bool>),
    Bytes(Vec<ByteArray>),
}

pub(super) struct List {
    content: ColumnType,
    /// How many lists there are around an entry, this one included.
    depth: i16,
    /// Their names, empty where an entry is not a struct.
    fields: Vec<(&'static str, Field)>,
}

impl Field {
    pub(super) fn column(content: ColumnType) -> Self {
        Self::within(content, 0)
    }

    fn within(content: ColumnType, depth: i16) -> Self {
        let inner = |content| Self::within(content, depth + 1);
        let fields = match content {
            ColumnType::Texts => vec![("", inner(ColumnType::Text))],
            ColumnType::Counts => {
                let key = Self::Leaf(Leaf { is_required: true, ..Leaf::within(ColumnType::Text, depth + 1) });
                vec![("", key), ("", inner(ColumnType::Unsigned))]
            }
            ColumnType::Structs(fields) => fields.iter().map(|(name, content)| (*name, inner(*content))).collect(),
            _ => return Self::Leaf(Leaf::within(content, depth)),
        };
        Self::List(List { content, depth: depth + 1, fields })
    }

    /// Adds the value of a row; `wire` are its captured bytes. Returns about how many bytes of memory that takes.
    pub(super) fn push(&mut self, value: Option<&Value>, wire: &[u8]) -> usize {
        self.push_at(value, wire, Levels { definition: 0, repetition: 0 })
    }

    fn push_at(&mut self, value: Option<&Value>, wire: &[u8], levels: Levels) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.push(value, wire, levels),
            Self::List(list) => list.push(value, levels),
        }
    }

    pub(super) fn leaves(&mut self) -> Vec<&mut Leaf> {
        match self {
            Self::Leaf(leaf) => vec![leaf],
            Self::List(list) => list.fields.iter_mut().flat_map(|(_, field)| field.leaves()).collect(),
        }
    }
}

/// Where a value is: how much around it is there, and which list goes on.
#[derive(Debug, Clone, Copy)]
struct Levels {
    definition: i16,
    repetition: i16,
}

impl List {
    fn push(&mut self, value: Option<&Value>, levels: Levels) -> usize {
        match value {
            Some(Value::Array(entries)) => self.push_entries(entries.iter().map(|entry| (None, entry)), levels),
            Some(Value::Object(map)) => {
                self.push_entries(map.iter().map(|(name, count)| (Some(name.as_str()), count)), levels)
            }
            _ => self.push_none(levels),
        }
    }

    fn push_entries<'a>(
        &mut self,
        entries: impl ExactSizeIterator<Item = (Option<&'a str>, &'a Value)>,
        Levels { definition, mut repetition }: Levels,
    ) -> usize {
        if entries.len() == 0 {
            return self.push_none(Levels { definition: definition + 1, repetition });
        }
        let mut bytes = 0;
        for (name, entry) in entries {
            // The list is there, and an entry of it.
            bytes += self.push_entry(name, entry, Levels { definition: definition + 2, repetition });
            repetition = self.depth;
        }
        bytes
    }

    fn push_entry(&mut self, key: Option<&str>, entry: &Value, levels: Levels) -> usize {
        let key = key.map(Value::from);
        let content = self.content;
        let fields =
            self.fields.iter_mut().enumerate().map(|(at, (name, field))| {
                field.push_at(entry_value(content, key.as_ref(), entry, name, at), &[], levels)
            });
        fields.sum()
    }

    fn push_none(&mut self, levels: Levels) -> usize {
        let fields = self.fields.iter_mut().flat_map(|(_, field)| field.leaves());
        fields.map(|leaf| leaf.push_level(levels)).sum()
    }
}

impl Leaf {
    fn within(content: ColumnType, depth: i16) -> Self {
        let repetitions = (depth > 0).then(Vec::new);
        Self { content, values: Values::of(content), definitions: Vec::new(), repetitions, is_required: false }
    }

    fn push(&mut self, value: Option<&Value>, wire: &[u8], levels: Levels) -> usize {
        let content = self.content;
        self.push_with(levels, |values| values.push(value?, content, wire))
    }

    /// Adds what `push` adds, or null.
    fn push_with(
        &mut self,
        Levels { definition, repetition }: Levels,
        push: impl FnOnce(&mut Values) -> Option<usize>,
    ) -> usize {
        let bytes = push(&mut self.values);
        let is_there = bytes.is_some() && !self.is_required;
        self.push_level(Levels { definition: definition + i16::from(is_there), repetition }) + bytes.unwrap_or(0)
    }

    fn push_level(&mut self, Levels { definition, repetition }: Levels) -> usize {
        self.definitions.push(definition);
        if let Some(repetitions) = &mut self.repetitions {
            repetitions.push(repetition);
        }
        2 * size_of::<i16>()
    }

    pub(super) fn write(&mut self, writer: &mut ColumnWriter<'_>) -> Result<()> {
        let (definitions, repetitions) = (Some(&*self.definitions), self.repetitions.as_deref());
        match (writer, &self.values) {
            (ColumnWriter::Int64ColumnWriter(writer), Values::Integers(values)) => {
                writer.write_batch(values, definitions, repetitions)
            }
            (ColumnWriter::DoubleColumnWriter(writer), Values::Floats(values)) => {
                writer.write_batch(values, definitions, repetitions)
            }
            (ColumnWriter::BoolColumnWriter(writer), Values::Flags(values)) => {
                writer.write_batch(values, definitions, repetitions)
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Bytes(values)) => {
                writer.write_batch(values, definitions, repetitions)
            }
            _ => Err(ParquetError::General(format!("a column of {:?} has another type", self.content))),
        }?;
        self.values = Values::of(self.content);
        self.definitions.clear();
        if let Some(repetitions) = &mut self.repetitions {
            repetitions.clear();
        }
        Ok(())
    }
}

impl Values {
    fn of(content: ColumnType) -> Self {
        match content {
            ColumnType::Time | ColumnType::Unsigned | ColumnType::Signed => Self::Integers(Vec::new()),
            ColumnType::Float => Self::Floats(Vec::new()),
            ColumnType::Flag => Self::Flags(Vec::new()),
            _ => Self::Bytes(Vec::new()),
        }
    }

    /// Adds a value; returns its size in bytes, `None` if it has another type.
    fn push(&mut self, value: &Value, content: ColumnType, wire: &[u8]) -> Option<usize> {
        match self {
            // The bits of an unsigned number: the logical type says how to read them.
            Self::Integers(_) => self.push_integer(value.as_i64().or_else(|| value.as_u64().map(u64::cast_signed))?),
            Self::Floats(_) => self.push_float(value.as_f64()?),
            Self::Flags(values) => {
                values.push(value.as_bool()?);
                Some(size_of::<i64>())
            }
            Self::Bytes(_) if content == ColumnType::Bytes => self.push_bytes(wire),
            Self::Bytes(_) => self.push_bytes(value.as_str()?.as_bytes()),
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

    fn push_bytes(&mut self, value: &[u8]) -> Option<usize> {
        let Self::Bytes(values) = self else { return None };
        values.push(value.to_vec().into());
        Some(size_of::<ByteArray>() + value.len())
    }
}
