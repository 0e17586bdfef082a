//! What the first stages find in captures, without a model.

use std::path::Path;

use serde_json::Value;

use crate::injected::{Answers, Traffic};
use crate::programs::{GATEWAY, sizeleak, write};

/// The first stages, in order.
const STAGES: [&str; 4] = ["capture", "flow-filter", "record-sizer", "command-segmenter"];

/// Runs the stages up to `last` over captures; `more` are further arguments.
pub fn found(last: &str, inputs: &[&Path], more: &[&str]) -> Answers {
    let folder = tempfile::tempdir().unwrap();
    let end = STAGES.iter().position(|stage| *stage == last).unwrap();
    let stages: Vec<String> = STAGES[..=end].iter().map(|stage| format!("[[stage]]\nrun = \"{stage}\"\n")).collect();
    let pipeline = write(folder.path(), "pipeline.toml", stages.concat());
    let mut command = sizeleak("run");
    command.arg(pipeline).args(inputs).args(["--gateway", GATEWAY, "--format", "ndjson"]);
    command.args(["--kind", "flow,record,command,notice,summary"]).args(more);
    Answers::of(&command.output().unwrap())
}

/// The same for this capture.
pub fn found_in(last: &str, pcap: &[u8], more: &[&str]) -> Answers {
    let folder = tempfile::tempdir().unwrap();
    found(last, &[&write(folder.path(), "traffic.pcap", pcap)], more)
}

/// Time and size of each command.
pub fn commands(answers: &Answers) -> Vec<(i64, u64)> {
    let of = |command: &Value| (command["time_ns"].as_i64().unwrap(), command["size"].as_u64().unwrap());
    answers.kind("command").iter().map(of).collect()
}

/// The size of each command, in order.
pub fn sizes(answers: &Answers) -> Vec<u64> {
    commands(answers).into_iter().map(|(_, size)| size).collect()
}

/// Direction and length of each record of data, in order.
pub fn data(answers: &Answers) -> Vec<(String, u64)> {
    let records = answers.kind("record").into_iter();
    let data = records.filter(|record| record["content_type"] == 23 && record["handshake"] == false);
    data.map(|record| (record["direction"].as_str().unwrap().to_owned(), record["length"].as_u64().unwrap())).collect()
}

/// The bundled capture, its payloads encrypted once more: nothing in it looks like TLS.
pub fn without_tls() -> Traffic {
    let mut traffic = Traffic::bundled();
    for (_, frame) in &mut traffic.0 {
        if let Some(start) = payload_start(frame) {
            frame[start..].iter_mut().for_each(|byte| *byte ^= 0xa5);
        }
    }
    traffic
}

/// Where the payload of a TCP segment begins in a frame.
fn payload_start(frame: &[u8]) -> Option<usize> {
    let packet = etherparse::SlicedPacket::from_ethernet(frame).ok()?;
    let Some(etherparse::TransportSlice::Tcp(tcp)) = packet.transport else { return None };
    Some(frame.len() - tcp.payload().len())
}
