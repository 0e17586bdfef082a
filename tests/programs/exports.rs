//! Exports open in the programs that people use, lose no digits, and name the gateway and service of every row.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sizeleak_frame::{
    Actions, Candidate, Command as CommandFrame, Flow, FlowId, Frame, Hello, Identification, Session, SharedList,
    SingleReply, Summary, Transport,
};
use support::programs::{example, feed, pipe, seven, sizeleak, stderr, stdout};
use support::streams::{answers_of, stream_of};

/// A flow's number that a float cannot hold.
const FLOW: u64 = u64::MAX - 1;

fn python(code: &str, file: &Path) -> Value {
    let output = Command::new("python3").args(["-c", code]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn exported(stream: &[u8], format: &str, kind: &str) -> Vec<u8> {
    let output = feed(sizeleak(&format!("frames --format {format} --kind {kind}")), stream.to_vec());
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

fn json_rows(stream: &[u8], kind: &str) -> Vec<Value> {
    let text = String::from_utf8(exported(stream, "ndjson", kind)).unwrap();
    let row = |line: &str| serde_json::from_str::<Value>(line).unwrap()[kind.trim_end_matches('s')].clone();
    text.lines().map(row).collect()
}

fn saved(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, content).unwrap();
    file
}

/// A stream with names and numbers that break careless exports.
fn odd_stream() -> Vec<u8> {
    let text = |text: &str| text.to_owned();
    let hello = Hello { schema: 1, stage: text("x"), version: text("1"), upstream: Vec::new() };
    let flow = Flow::new(FLOW, "2001:db8::20".parse().unwrap(), "[2001:db8::7]:8443".parse().unwrap(), Transport::Udp);
    let server_name = Some(text("-"));
    let session =
        Session { time_ns: 5, flow: FLOW, server_name, tls_version: None, cipher_suite: None, protocol: None };
    let command = |time_ns: i64, single_replies: SharedList<SingleReply>| CommandFrame {
        time_ns,
        end_ns: time_ns,
        flow: FLOW,
        size: 4,
        records: 1,
        single_replies,
        ..CommandFrame::default()
    };
    let candidate = |actions: &[(&str, u32)]| Candidate {
        actions: actions.iter().map(|(name, count)| ((*name).into(), *count)).collect::<Actions>(),
        epsilon: -1,
        probability: 0.1,
        likelihood: None,
    };
    let mut answers = Vec::new();
    let named: [&[(&str, u32)]; 3] = [&[("a\tb,\u{e9}\\", 1)], &[], &[("on", 2), ("off", 1)]];
    for (actions, at) in named.into_iter().zip(0_u32..) {
        let replies = (0..at.into()).map(|after_ns| SingleReply { after_ns, length: 7 }).collect();
        let fewer = |by: u32| &actions[..actions.len().saturating_sub(by as usize)];
        let candidates = (0..=at).map(|by| candidate(fewer(by))).collect();
        let command = command(1_767_600_000_012_345_678 + i64::from(at), replies);
        let answer =
            Identification { candidates, candidate_count: u64::MAX, listed: 1, ..Identification::unanswered(command) };
        answers.push(Frame::from(answer));
    }
    answers.push(Identification::unanswered(command(-1, SharedList::default())).into());
    let frames = [&[hello.into(), flow.into(), session.into()][..], &answers, &[Summary::default().into()]].concat();
    stream_of(&frames)
}

/// What every stage of the pipe makes of the bundled home.
fn stream_after(stages: usize) -> Vec<u8> {
    pipe(seven(&example("test.pcap")).drain(..stages).collect()).pop().unwrap().stdout
}

#[test]
fn every_row_of_a_flow_names_it_as_text_with_its_gateway_and_service() {
    for (stages, kind) in
        [(2, "segments"), (3, "record"), (3, "session"), (4, "command"), (7, "identification"), (7, "notice")]
    {
        let stream = stream_after(stages);
        let mut rows = json_rows(&stream, kind);
        let csv = exported(&stream, "csv", kind);
        let mut csv = csv::Reader::from_reader(&*csv);
        let header = csv.headers().unwrap().clone();
        let column = |name: &str| header.iter().position(|column| column == name).unwrap();
        let (flow, gateway, service) = (column("flow"), column("gateway"), column("service"));
        let cells: Vec<_> = csv.records().map(|row| row.unwrap()).collect();
        assert_eq!(rows.len(), cells.len(), "{kind}");
        assert!(!rows.is_empty(), "{kind}");
        for (row, cells) in rows.iter_mut().zip(&cells) {
            let id = row["flow"].as_str().unwrap();
            assert!(id.parse::<FlowId>().is_ok() && id.len() == 17, "{row}");
            assert_eq!(row["gateway"], "192.168.1.20", "{kind}");
            let name = row["service"].as_str().unwrap();
            assert!(name.ends_with(".example") || name.ends_with(":443"), "{row}");
            assert_eq!((id, "192.168.1.20", name), (&cells[flow], &cells[gateway], &cells[service]), "{kind}");
        }
    }
}

#[test]
fn flow_in_exports_is_the_number_in_frames() {
    let stream = stream_after(7);
    let numbers: Vec<u64> = answers_of(&stream).iter().map(|answer| answer.command.flow).collect();
    assert!(numbers.iter().any(|flow| *flow > 1 << 53), "a float would not hold them");
    let ids = json_rows(&stream, "identification").into_iter().map(|row| row["flow"].as_str().unwrap().to_owned());
    assert_eq!(ids.map(|id| id.parse::<FlowId>().unwrap().0).collect::<Vec<_>>(), numbers);
}

#[test]
#[ignore = "second tier: needs jq"]
fn jq_keeps_every_digit_of_a_flow() {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(folder.path(), "odd.ndjson", &exported(&odd_stream(), "ndjson", "identification"));
    let mut jq = Command::new("jq");
    jq.args(["-r", ".identification | [.flow, .gateway, .service, (.candidates[0].actions.on // 0)] | @tsv"]).arg(file);
    let text = String::from_utf8(stdout(&mut jq)).unwrap();
    assert_eq!(text.lines().nth(2), Some("Ffffffffffffffffe\t2001:db8::20\t-\t2"));
}

const PARQUET_READER: &str = include_str!("exports/read_parquet.py");

#[test]
#[ignore = "second tier: needs python3 with pyarrow, duckdb and polars"]
fn parquet_readers_find_the_candidates_of_the_frames() {
    let folder = tempfile::tempdir().unwrap();
    for (name, stream) in [("home", stream_after(7)), ("odd", odd_stream())] {
        let wanted: Vec<Value> = json_rows(&stream, "identification")
            .into_iter()
            .map(|mut row| {
                let first = row["candidates"].get(0).map_or(Value::Null, |first| first["actions"].clone());
                // A column has a value in every row.
                for candidate in row["candidates"].as_array_mut().unwrap() {
                    candidate.as_object_mut().unwrap().entry("likelihood").or_insert(Value::Null);
                }
                serde_json::json!({
                    "flow": row["flow"].take(), "service": row["service"].take(),
                    "candidates": row["candidates"].take(), "single_replies": row["single_replies"].take(),
                    "actions": first,
                })
            })
            .collect();
        let file = saved(folder.path(), &format!("{name}.parquet"), &exported(&stream, "parquet", "identification"));
        let found = python(PARQUET_READER, &file);
        assert_eq!(found["arrow"], Value::from(wanted.clone()), "{name}");
        assert_eq!(found["duck"], Value::from(wanted.clone()), "{name}");
        let lengths = |field: &str| -> Vec<Value> {
            wanted.iter().map(|row| row[field].as_array().unwrap().len().into()).collect()
        };
        let flows: Vec<Value> = wanted.iter().map(|row| row["flow"].clone()).collect();
        let expected = serde_json::json!([flows, lengths("candidates"), lengths("single_replies")]);
        assert_eq!(found["polars"], expected, "{name}");
    }
}

const ZEEK_READER: &str = include_str!("exports/read_zeek.py");

fn zeek_log(stream: &[u8], kind: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    python(ZEEK_READER, &saved(folder.path(), "sizeleak.log", &exported(stream, "zeek", kind)))
}

#[test]
#[ignore = "second tier: needs python3"]
fn zeek_log_holds_the_answers_and_the_ends_of_their_flows() {
    let stream = stream_after(7);
    let (log, answers) = (zeek_log(&stream, "identification"), json_rows(&stream, "identification"));
    let flows = json_rows(&stream, "flow");
    let port = |flow: &Value| flows.iter().find(|row| row["flow"] == *flow).map(|row| row["gateway_port"].clone());
    assert_eq!((&log["path"], &log["is_closed"]), (&"sizeleak".into(), &true.into()));
    assert_eq!(log["rows"].as_array().unwrap().len(), answers.len());
    for (row, answer) in log["rows"].as_array().unwrap().iter().zip(&answers) {
        let microseconds = (row["ts"].as_f64().unwrap() * 1e6).round() as i64;
        assert_eq!(microseconds, answer["time_ns"].as_i64().unwrap() / 1000);
        for (field, name) in [("uid", "flow"), ("id.orig_h", "gateway"), ("server_name", "service"), ("size", "size")] {
            assert_eq!(row[field], answer[name], "{field}");
        }
        assert_eq!((&row["id.resp_p"], &row["proto"]), (&443.into(), &"tcp".into()));
        assert!(row["id.orig_p"].is_u64() && Some(&row["id.orig_p"]) == port(&row["uid"]).as_ref(), "{row}");
        let best = &answer["candidates"][0];
        let actions = best["actions"].as_object().unwrap().iter().map(|(name, count)| format!("{name}={count}"));
        assert_eq!(row["actions"], Value::from(actions.collect::<Vec<_>>()));
        assert_eq!(row["probability"], best["probability"]);
    }
}

#[test]
#[ignore = "second tier: needs python3"]
fn zeek_logs_of_other_kinds_and_odd_names_read_back() {
    let odd = zeek_log(&odd_stream(), "identification");
    let rows = odd["rows"].as_array().unwrap();
    assert_eq!(rows[0]["actions"], serde_json::json!(["a\tb,\u{e9}\\=1"]));
    assert_eq!((&rows[1]["actions"], &rows[3]["actions"]), (&serde_json::json!([]), &Value::Null));
    assert_eq!((&rows[0]["server_name"], &rows[0]["id.resp_h"]), (&"-".into(), &"2001:db8::7".into()));
    assert_eq!((&rows[0]["candidate_count"], &rows[0]["uid"]), (&u64::MAX.into(), &"Ffffffffffffffffe".into()));
    let stream = stream_after(3);
    let (log, records) = (zeek_log(&stream, "record"), json_rows(&stream, "record"));
    assert_eq!(log["path"], "sizeleak_record");
    let lengths =
        |rows: &[Value]| rows.iter().map(|row| (row["length"].clone(), row["handshake"].clone())).collect::<Vec<_>>();
    assert_eq!(lengths(log["rows"].as_array().unwrap()), lengths(&records));
    let none = zeek_log(&stream, "command");
    assert!(none["rows"].as_array().unwrap().is_empty() && none["is_closed"] == true, "a log without rows is one too");
}
