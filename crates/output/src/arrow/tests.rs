//! Tests of `arrow`.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use sizeleak_frame::{Command, Direction, Flow, KINDS, Notice, Segment, Segments, SingleReply, Transport};

use super::*;
use crate::cells::{MAX_BYTES, MAX_ROWS};

fn batch(kind: &str, frames: &[Frame]) -> RecordBatch {
    let mut builder = RecordBatchBuilder::new(kind).unwrap();
    for frame in frames {
        builder.write(frame).unwrap();
    }
    builder.take_batch().unwrap()
}

#[test]
fn every_kind_has_batches_with_its_columns() {
    for kind in KINDS {
        let columns = columns(kind).unwrap();
        let names: Vec<&str> = columns.iter().map(|column| typed_name(column.name, column.content)).collect();
        let empty = batch(kind, &[]);
        let found: Vec<String> = empty.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(found, names, "{kind}");
        assert_eq!(empty.num_rows(), 0);
    }
    assert!(RecordBatchBuilder::new("new").is_none());
}

#[test]
fn lists_numbers_and_names_of_a_command_are_its_row() {
    let flow = Flow::new(u64::MAX, "192.0.2.1".parse().unwrap(), "203.0.113.1:443".parse().unwrap(), Transport::Tcp);
    let single_replies = vec![SingleReply { after_ns: 5, length: 60 }, SingleReply { after_ns: 6, length: 70 }];
    let command = Command { flow: u64::MAX, size: 233, single_replies: single_replies.into(), ..Command::default() };
    let batch = batch("command", &[flow.into(), command.into(), Command::default().into()]);
    assert_eq!(batch.num_rows(), 2);
    let column = |name: &str| batch.column_by_name(name).unwrap();
    assert_eq!(column("size").as_primitive::<UInt64Type>().values(), &[233, 0]);
    assert_eq!(column("gateway").as_string::<i32>().iter().collect::<Vec<_>>(), [Some("192.0.2.1"), None]);
    assert_eq!(column("plaintext_min").null_count(), 2);
    let replies = column("single_replies").as_list::<i32>();
    assert_eq!((replies.value_length(0), replies.value_length(1), replies.null_count()), (2, 0, 0));
    let lengths = replies.values().as_struct().column_by_name("length").unwrap();
    assert_eq!(lengths.as_primitive::<UInt64Type>().values(), &[60, 70]);
}

#[test]
fn captured_bytes_are_raw() {
    let mut segments = Segments::new();
    for payload in [&[7; 100][..], &[], &[0, 255]] {
        let direction = Direction::ToGateway;
        let acknowledgement = None;
        segments.push(Segment {
            time_ns: 1,
            flow: 2,
            direction,
            sequence: 3,
            flags: 4,
            length: 5,
            payload,
            acknowledgement,
        });
    }
    let batch = batch("segments", &[segments.into()]);
    let payloads = batch.column_by_name("payload").unwrap().as_binary::<i32>();
    assert_eq!(payloads.iter().collect::<Vec<_>>(), [Some(&[7; 100][..]), Some(&[]), Some(&[0, 255])]);
}

#[test]
fn batches_are_bounded_and_begin_anew() {
    let mut builder = RecordBatchBuilder::new("notice").unwrap();
    let notice = |detail: String| -> Frame {
        let (stage, what) = ("x".into(), "gap".into());
        Notice { time_ns: None, stage, flow: None, what, bytes: None, detail: Some(detail) }.into()
    };
    for _ in 0..MAX_ROWS {
        assert!(!builder.is_full());
        builder.write(&notice(String::new())).unwrap();
    }
    assert!(builder.is_full() && builder.take_batch().unwrap().num_rows() == MAX_ROWS && builder.is_empty());
    builder.write(&notice("x".repeat(MAX_BYTES))).unwrap();
    assert!(builder.is_full() && builder.take_batch().unwrap().num_rows() == 1);
}
