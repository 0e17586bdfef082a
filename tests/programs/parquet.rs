//! Parquet files open in Arrow, and hold the same values as CSV of the same frames, with lists whole.

use std::process::{Command, Stdio};

use serde_json::Value;
use sizeleak_frame::KINDS;
use support::programs::{example, feed, pipe, seven, sizeleak, stderr, write};

/// Prints the columns of a file with their types, its rows as text, and what wrote it.
const READER: &str = r#"
import json, sys
import pyarrow as pa, pyarrow.parquet as pq

def text(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value.hex() if isinstance(value, bytes) else str(value)

def column_text(kind, value):
    # As in CSV: of single replies the lengths, of a map its entries.
    if value is None or not pa.types.is_nested(kind):
        return text(value)
    if pa.types.is_map(kind):
        return " ".join(f"{name}={count}" for name, count in value)
    return " ".join(str(entry["length"]) if isinstance(entry, dict) else entry for entry in value)

file = pq.ParquetFile(sys.argv[1])
table = file.read()
types = {field.name: str(field.type) for field in table.schema}
columns = []
for name, column in zip(table.column_names, table.columns):
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    is_list = name in ("candidates", "epsilons", "shifts", "numbers", "device_types", "commands")
    columns.append([] if is_list else [column_text(column.type, value) for value in column.to_pylist()])
columns = [column for column in columns if column or not len(table)]
print(json.dumps({"types": types, "rows": list(zip(*columns)), "by": file.metadata.created_by}))
"#;

fn read(file: &std::path::Path) -> Value {
    let output = Command::new("python3").args(["-c", READER]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A stream that has each kind: what every stage of the pipe makes, one after another.
fn streams() -> Vec<Vec<u8>> {
    (1..=7).map(|stages| pipe(seven(&example("test.pcap")).drain(..stages).collect()).pop().unwrap().stdout).collect()
}

#[test]
#[ignore = "second tier: needs python3 with pyarrow"]
fn arrow_reads_the_values_of_csv() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for (stages, stream) in streams().into_iter().enumerate() {
        for kind in KINDS.iter().filter(|kind| stages == 6 || !["hello", "summary", "notice"].contains(kind)) {
            let frames = |format: &str| sizeleak(&format!("frames --whole --kind {kind} --format {format}"));
            let csv = feed(frames("csv"), stream.clone());
            let mut rows = csv::Reader::from_reader(&*csv.stdout);
            let mut header: Vec<String> = rows.headers().unwrap().iter().map(str::to_owned).collect();
            let mut rows: Vec<Vec<String>> =
                rows.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
            // CSV has the same time twice, as text and as a number.
            if let Some(at) = header.iter().position(|name| name == "time") {
                std::iter::once(&mut header).chain(&mut rows).for_each(|row| drop(row.remove(at)));
            }
            if rows.is_empty() {
                continue;
            }
            seen.push(*kind);
            let parquet = feed(frames("parquet"), stream.clone());
            assert!(parquet.status.success(), "{}", stderr(&parquet));
            let again = feed(frames("parquet"), stream.clone());
            assert!(parquet.stdout == again.stdout, "{kind}: the same frames give the same bytes");
            let found = read(&write(folder.path(), "frames.parquet", parquet.stdout));
            assert!(found["by"].as_str().unwrap().starts_with("sizeleak version "), "{}", found["by"]);
            let types = found["types"].as_object().unwrap();
            let lists = ["candidates", "epsilons", "shifts", "numbers", "device_types"];
            let flat = types.keys().filter(|name| !lists.contains(&name.as_str()));
            let names = header.iter().map(|name| name.strip_suffix("_ns").unwrap_or(name));
            assert_eq!(flat.map(String::as_str).collect::<Vec<_>>(), names.collect::<Vec<_>>(), "{kind}");
            for (name, is) in types {
                match name.as_str() {
                    "time" | "start" | "end" => assert_eq!(is, "timestamp[ns, tz=UTC]"),
                    "size" | "length" | "number" => assert_eq!(is, "uint64"),
                    "flow" | "gateway" | "service" => assert_eq!(is, "string"),
                    "probability" | "weight" | "size_probability" => assert_eq!(is, "double"),
                    "actions" => assert!(is.as_str().unwrap().starts_with("map<string, uint64"), "{is}"),
                    "handshake" => assert_eq!(is, "bool"),
                    "data" | "payload" => assert_eq!(is, "binary"),
                    "epsilon" => assert_eq!(is, "int64"),
                    "numbers" => assert_eq!(is, "list<element: struct<actions: uint64, probability: double> not null>"),
                    "device_types" => {
                        assert_eq!(is, "list<element: struct<device: string, probability: double> not null>");
                    }
                    _ => {}
                }
            }
            let wanted = rows.iter().map(|row| row.iter().map(String::as_str));
            let found = found["rows"].as_array().unwrap();
            assert_eq!(found.len(), rows.len(), "{kind}");
            for (found, wanted) in found.iter().zip(wanted) {
                let found = found.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap());
                for ((found, wanted), column) in found.zip(wanted).zip(&header) {
                    let is_same = match column.as_str() {
                        "probability" | "weight" | "size_probability" => {
                            found.parse::<f64>().ok() == wanted.parse::<f64>().ok()
                        }
                        _ => found == wanted,
                    };
                    assert!(is_same, "{kind}, {column}: {found}, not {wanted}");
                }
            }
        }
    }
    // The seven stages make no deviation.
    let missing: Vec<_> = KINDS.iter().filter(|kind| **kind != "deviation" && !seen.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?} were not compared");
}

/// `script` gives a program a terminal.
#[test]
#[ignore = "second tier: needs script"]
fn a_terminal_is_refused() {
    let sizeleak = sizeleak("").get_program().display().to_string();
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{sizeleak} frames --format parquet --kind record"), "/dev/null"]);
    let output = script.stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("cannot be shown on a terminal"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}
