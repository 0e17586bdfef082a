//! Columns as a Parquet schema. Everything may be null, as in a frame, but the keys of a map.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::Result;
use parquet::schema::types::{Type, TypePtr};

use crate::columns::{Column, ColumnType};

/// The schema of a file with these columns.
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
    leaf(name, physical, logical, Repetition::OPTIONAL)
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
