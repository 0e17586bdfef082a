//! Traces are as frequent in everything as the model says.

use std::path::Path;

use sizeleak_audit::padding::{
    Countermeasures, FIRST_REPLY_NS, HomeTraffic, PaddingPolicy, TraceDirection, TraceRecord, TraceSource,
};
use sizeleak_inference::channel::{EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, Premises, PriorName};
use sizeleak_model::{Model, ModelSet};

const COMMANDS: u32 = 20_000;
const A_DAY: f64 = 1000.0;

fn bundled() -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/home/model.toml");
    ModelSet::read(&[path]).unwrap().into_sections().remove(0)
}

fn drawn(model: &Model, policy: &PaddingPolicy, seed: u64) -> [Vec<TraceRecord>; 2] {
    let space = CommandSpace::new(model, &Premises { prior: PriorName::Learned, decay: None }).unwrap();
    let possible = Observation::new(&space, model, Observer::Replies, EpsilonKnowledge::Distribution);
    let observation = possible.unwrap().unwrap();
    let source = TraceSource { observation: &observation, model, policy, commands_per_day: A_DAY };
    let records = source.draw(COMMANDS, seed);
    assert!(records.is_sorted_by_key(|record| record.time_ns));
    [TraceDirection::ToGateway, TraceDirection::FromGateway]
        .map(|direction| records.iter().filter(|record| record.direction == direction).copied().collect())
}

#[test]
fn sizes_replies_and_times_are_those_that_the_audit_expects() {
    let model = bundled();
    let space = CommandSpace::new(&model, &Premises { prior: PriorName::Learned, decay: None }).unwrap();
    let home = HomeTraffic::new(&space, &model, EpsilonKnowledge::Distribution, A_DAY).unwrap();
    let policy = PaddingPolicy::Multiple { bytes: 32 };
    let added = home.effect(&Countermeasures { policy: policy.clone(), ..Countermeasures::NONE }).unwrap().cost;
    let mean =
        |records: &[TraceRecord]| records.iter().map(|record| record.bytes as f64).sum::<f64>() / f64::from(COMMANDS);
    let ([plain, replies], [padded, _]) = (drawn(&model, &PaddingPolicy::None, 1), drawn(&model, &policy, 2));
    assert!((mean(&plain) - home.command_bytes()).abs() < 3.0, "{}", mean(&plain));
    assert!((mean(&padded) - home.command_bytes() - added.added_bytes).abs() < 3.0, "{}", mean(&padded));
    assert!(padded.iter().all(|record| record.bytes % 32 == 0));
    assert!((mean(&replies) - home.replies().bytes.unwrap()).abs() < 3.0, "{}", mean(&replies));
    let days = plain.last().unwrap().time_ns as f64 / 86_400e9;
    assert!((days * A_DAY / f64::from(COMMANDS) - 1.0).abs() < 0.03, "{days}");
    let first = replies.first().unwrap().time_ns;
    assert!(plain.iter().any(|command| command.time_ns + FIRST_REPLY_NS == first));
}

#[test]
fn the_same_seed_draws_the_same_trace() {
    let model = bundled();
    let policy = "random:40".parse().unwrap();
    assert_eq!(drawn(&model, &policy, 5), drawn(&model, &policy, 5));
    assert_ne!(drawn(&model, &policy, 5), drawn(&model, &policy, 6));
}
