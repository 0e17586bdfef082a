//! Identifications of a Parquet file, as an archive holds them: of the columns that say what they may be, and when.

use std::fs::File;
use std::sync::Arc;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use sizeleak_frame::{Actions, Candidate, Command, FlowId, Identification};

use crate::answers::AnswerSink;

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
