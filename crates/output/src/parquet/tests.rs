//! Tests of `parquet`.

use std::fs::File;

use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field as Read;
use proptest::prelude::*;
use sizeleak_frame::{Direction, FlowId, Notice, Segment, Segments};

use super::*;
use crate::cells::{MAX_BYTES, MAX_ROWS};

/// A reader of a file that holds these frames.
fn written(kind: &str, frames: &[Frame]) -> SerializedFileReader<File> {
    let file = tempfile::tempfile().unwrap();
    let selection = KindSelection::Kinds(vec![kind.to_owned()]);
    let mut parquet = ParquetFile::new(&selection, file.try_clone().unwrap()).unwrap();
    let mut names = FlowNames::default();
    for frame in frames {
        names.observe(frame);
        parquet.write(frame, &names).unwrap();
    }
    parquet.finish().unwrap();
    SerializedFileReader::new(file).unwrap()
}

fn read(reader: &SerializedFileReader<File>) -> Vec<Vec<Read>> {
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect()).collect()
}

fn notice(time_ns: Option<i64>, flow: Option<u64>, detail: Option<String>) -> Frame {
    Notice { time_ns, stage: "x".into(), flow, what: "gap".into(), bytes: None, detail }.into()
}

#[test]
fn row_groups_are_bounded() {
    let frames: Vec<Frame> = (0..MAX_ROWS as u64 + 9).map(|flow| notice(None, Some(flow), None)).collect();
    let reader = written("notice", &frames);
    let rows = reader.metadata().row_groups().iter().map(RowGroupMetaData::num_rows);
    let groups: Vec<usize> = rows.map(|rows| rows as usize).collect();
    assert!(groups.len() > 1 && groups.iter().all(|rows| *rows <= MAX_ROWS), "{groups:?}");
    assert_eq!(groups.iter().sum::<usize>(), MAX_ROWS + 9);
    let large: Vec<Frame> = (0..3).map(|_| notice(None, None, Some("x".repeat(MAX_BYTES / 2 + 1)))).collect();
    assert_eq!(written("notice", &large).num_row_groups(), 2);
}

#[test]
fn file_without_rows_has_its_columns() {
    let reader = written("flow", &[]);
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names, ["flow", "gateway", "gateway_port", "service", "transport", "encapsulation"]);
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
}

#[test]
fn captured_bytes_are_stored_raw_and_whole() {
    let mut segments = Segments::new();
    let payloads = [&[7; 100][..], &[], &[0, 255]];
    for payload in payloads {
        let direction = Direction::ToGateway;
        segments.push(Segment {
            time_ns: 1,
            flow: 2,
            direction,
            sequence: 3,
            flags: 4,
            length: 5,
            payload,
            acknowledgement: None,
        });
    }
    let rows = read(&written("segments", &[segments.into()]));
    let found: Vec<&Read> = rows.iter().map(|row| &row[6]).collect();
    let wanted = payloads.map(|payload| Read::Bytes(payload.to_vec().into()));
    assert_eq!(found, wanted.iter().collect::<Vec<_>>());
}

#[test]
fn error_of_the_output_is_returned() {
    struct FullDisk;
    impl Write for FullDisk {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let selection = KindSelection::Kinds(vec!["notice".to_owned()]);
    let mut parquet = ParquetFile::new(&selection, FullDisk).unwrap();
    parquet.write(&notice(None, None, None), &FlowNames::default()).unwrap();
    assert_eq!(parquet.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn all_values_read_back(
        given in prop::collection::vec(any::<(Option<i64>, Option<u64>, Option<String>)>(), 1..40),
    ) {
        let frames: Vec<Frame> = given.iter().cloned().map(|(time, flow, detail)| notice(time, flow, detail)).collect();
        let rows = read(&written("notice", &frames));
        prop_assert_eq!(rows.len(), given.len());
        for (row, (time, flow, detail)) in rows.iter().zip(given) {
            prop_assert_eq!(&row[2], &flow.map_or(Read::Null, |flow| Read::Str(FlowId(flow).to_string())));
            prop_assert_eq!(&row[5], &detail.map_or(Read::Null, Read::Str));
            let bits = match row[0] {
                Read::Null => None,
                Read::Long(bits) | Read::TimestampMicros(bits) | Read::TimestampMillis(bits) => Some(bits),
                ref other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
            prop_assert_eq!(bits, time);
        }
    }
}
