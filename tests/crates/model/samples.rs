//! A home, a model with all its parts, and random numbers.

use std::collections::BTreeMap;

use sizeleak_model::{
    Action, Basis, CaptureDigest, Device, EpsilonTuple, FitMethod, GatewayRecords, Inventory, Model, Neighbours,
    NoiseStatistics, Prior, Provenance, ReplyBytesModel, ReplyCountModel, Scope, ServiceRecords, Smoothing,
};

pub(crate) fn device(name: &str, count: u32, actions: &[&str]) -> Device {
    Device {
        name: name.into(),
        count,
        actions: actions.iter().map(|action| (*action).to_owned()).collect(),
        safe: true,
    }
}

/// Twelve plugs, and four lamps that share two actions with the plugs.
pub(crate) fn home() -> Inventory {
    Inventory { devices: vec![device("plug", 12, &["on", "off"]), device("lamp", 4, &["on", "off", "red"])] }
}

/// Actions with these names; their sizes do not matter.
pub(crate) fn actions(names: &[&str]) -> Vec<Action> {
    names.iter().map(|name| Action::new(*name, 1)).collect()
}

/// A model with all its parts.
pub(crate) fn model() -> Model {
    let tuples = [(100, 0), (100, 0), (100, 1), (150, -1)].map(|(size, epsilon)| EpsilonTuple::new(size, epsilon));
    Model {
        scope: Scope::default(),
        overhead: 60,
        actions: vec![Action::new("on", 40), Action::new("o\"ff", 41)],
        kinds: None,
        inventory: Some(Inventory { devices: vec![device("plug", 12, &["on", "o\"ff"])] }),
        neighbours: Neighbours::new(tuples).unwrap(),
        smoothing: Smoothing { k: 3, strength: 30.0 },
        prior: Some(Prior {
            numbers: vec![0.5, 0.25],
            decay: 0.5,
            shares: vec![0.75, 0.25],
            concentration: 9.0,
            recurring: Vec::new(),
        }),
        replies: ReplyCountModel { fixed: 0.5, per_action: 1.0, missing: 0.01, surplus: 0.02 },
        reply_bytes: Some(ReplyBytesModel {
            fixed: 12.0,
            per_reply: 30.0,
            per_action: vec![20.0, 21.5],
            spread: 0.5,
            odd: 0.1,
            odd_spread: 99.0,
            odd_deviations: vec![(-21, 3)],
        }),
        single_replies: None,
        reply_windows: None,
        noise: Some(noise()),
        learned: Provenance {
            method: FitMethod::Robust,
            commands: 4,
            version: "0.1.0".into(),
            basis: Basis::Plaintext { cipher_suite: "TLS_AES_128_GCM_SHA256".into(), record_overhead: [17, 18] },
            captures: vec![CaptureDigest { name: "learn.pcap".into(), sha256: "0f".repeat(32) }],
            padding: None,
            block_rest: None,
            certainty: 1.0,
            warnings: Vec::new(),
            found_with: BTreeMap::new(),
            seen: Vec::new(),
        },
    }
}

/// Statistics of a gateway with keep-alives and readings.
pub(crate) fn noise() -> NoiseStatistics {
    let keep_alive = ServiceRecords { size: 23, alone: 40, every_ms: Some(120_000), on_beat: 39, ..Default::default() };
    NoiseStatistics {
        commands: 9,
        replied: 8,
        to_gateway: vec![ServiceRecords { size: 19, answers: 12, ..Default::default() }, keep_alive],
        from_gateway: vec![GatewayRecords { size: 60, times: 12, answered: 12, by: Some(19), ..Default::default() }],
        ..Default::default()
    }
}

/// A small random generator: test results must not depend on the version of another crate.
pub(crate) struct TestRandom(pub(crate) u64);

impl TestRandom {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
