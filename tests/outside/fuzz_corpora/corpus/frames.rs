//! Streams of frames: one of every kind of the contract and one of an unknown kind.

use serde_json::{Value, json};

pub(super) fn inputs() -> Vec<(&'static str, Vec<u8>)> {
    let command = json!({
        "time_ns": 1, "end_ns": 2, "flow": 7, "size": 180, "plaintext": [156, 156], "records": 1, "replies": 2,
        "reply_bytes": 90
    });
    let with = |more: Value| {
        let mut all = command.as_object().unwrap().clone();
        all.extend(more.as_object().unwrap().clone());
        Value::from(all)
    };
    let hello = json!({"hello": {"schema": 1, "stage": "pruner", "version": "0.1.0", "upstream": ["capture"]}});
    let flow = json!({"flow": {"flow": 7, "gateway": "192.0.2.20", "service": "192.0.2.10:443", "transport": "tcp"}});
    let session = json!({"session": {
        "time_ns": 1, "flow": 7, "server_name": "hub.example", "tls_version": "TLS 1.3", "cipher_suite": null
    }});
    let record = json!({"record": {
        "time_ns": 2, "start_ns": 1, "flow": 7, "direction": "to_gateway", "content_type": 23, "length": 180,
        "plaintext": [156, 156], "handshake": false
    }});
    let correction = json!({"correction": with(json!({"epsilons": [{"epsilon": -1, "weight": 0.5}]}))});
    let candidate = json!({"actions": {"on": 2}, "epsilon": 0, "probability": 0.75});
    let identification = json!({"identification": with(json!({
        "candidates": [candidate], "candidate_count": 1, "listed": 1, "min_actions": 1, "max_actions": null
    }))});
    let notice = json!({"notice": {
        "time_ns": null, "stage": "record-sizer", "flow": 7, "what": "gap", "bytes": 1460, "detail": "lost"
    }});
    let unknown = json!({"weather": {"rain": true, "since": [1, 2.5, "long"]}});
    let summary = json!({"summary": {"stages": []}});
    let rest = [flow, session, record, json!({"command": command}), correction, identification, notice, unknown];
    let bulk = [packets(), segments()].concat();
    let stream = [encode(&hello), bulk, rest.iter().flat_map(encode).collect(), encode(&summary)].concat();
    vec![
        ("cut", stream[..stream.len() / 2].to_vec()),
        ("newer", encode(&json!({"hello": {"schema": 2, "stage": "x", "version": "9", "upstream": []}}))),
        ("kinds", stream),
        ("lies", vec![0x81, 0xa5, b'h', b'e', b'l', b'l', b'o', 0xdf, 0xff, 0xff, 0xff, 0xff]),
    ]
}

fn packets() -> Vec<u8> {
    let row = (1_i64, 1_u16, 60_u32, serde_bytes::Bytes::new(&[0xab; 40]), 0_u32, 1_u64);
    rmp_serde::to_vec(&std::collections::BTreeMap::from([("packets", [row])])).unwrap()
}

fn segments() -> Vec<u8> {
    let row = (1_i64, 7_u64, 0_u8, 900_u32, 0x18_u8, 50_u32, serde_bytes::Bytes::new(&[0x17, 3, 3, 0, 45]));
    rmp_serde::to_vec(&std::collections::BTreeMap::from([("segments", [row])])).unwrap()
}

fn encode(frame: &Value) -> Vec<u8> {
    rmp_serde::to_vec(frame).unwrap()
}
