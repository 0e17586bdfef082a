//! Padded commands: what an attack by the whole pipeline finds in real TLS is what the audit and the exact limit say.

use std::fs;

use serde_json::Value;
use sizeleak_model::policies::{PaddingPolicy, PolicyFile};
use sizeleak_simulator::scenario::{Framing, PaddingLayer, ReplyMode, Version};
use sizeleak_simulator::{Scenario, bayes_limit};
use support::home::{Home, assert_fails, assert_within, first_right, run};
use support::programs::{sizeleak, stderr, unbroken};

const SEED: u64 = 25;

/// A home without replies, so that only sizes tell something.
fn scenario(policy: &str) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.replies.mode = ReplyMode::None;
    scenario.test.commands = 400;
    scenario.padding.policy = policy.parse().unwrap();
    scenario
}

/// V of the command, by `sizeleak audit`.
fn audited(home: &Home) -> f64 {
    let output = run(sizeleak("audit --format=json --quiet --model").arg(home.path("model.toml")));
    assert!(output.status.success(), "{}", stderr(&output));
    let audit: Value = serde_json::from_slice(&output.stdout).unwrap();
    audit["by_size"]["command"]["named"].as_f64().unwrap()
}

#[test]
fn attacks_on_padded_homes_reach_what_the_audit_and_the_exact_limit_say() {
    let plain = Home::learned(&scenario("none"), SEED);
    for (policy, layer, framing) in [
        ("multiple:32", PaddingLayer::Body, Framing::Websocket),
        ("padme", PaddingLayer::Body, Framing::Mqtt),
        ("tls13:64", PaddingLayer::Record, Framing::Websocket),
    ] {
        let mut scenario = scenario(policy);
        (scenario.padding.layer, scenario.session.framing) = (layer, framing);
        scenario.tls.version = if layer == PaddingLayer::Record { Version::Tls13 } else { Version::Tls12 };
        let limit = bayes_limit(&scenario).unwrap().top_1;
        let padded = Home::new(&scenario, SEED);
        // The home is learned from its padded commands.
        let learned = padded.learn("retrained.toml", &["--padding", policy]);
        assert!(learned.status.success(), "{}", stderr(&learned));
        let retrained = padded.figures("retrained.toml", &["--quiet"]);
        assert_eq!(retrained["matched"], 400, "{policy}");
        assert_within(&format!("{policy}, retrained, the limit"), limit, &retrained["after_pruning"]);
        if framing != Framing::Websocket {
            continue;
        }
        // Its sizes without padding are known.
        padded.add_policy(&plain, &scenario.padding.policy);
        let known = padded.figures("model.toml", &["--quiet"]);
        assert_within(&format!("{policy}, known sizes, the limit"), limit, &known["after_pruning"]);
        assert_within(&format!("{policy}, known sizes, the audit"), audited(&padded), &known["after_pruning"]);
        // And its commands are padded in thought alone.
        let what_if = &plain.figures("model.toml", &["--quiet", "--what-if", policy])["what_if"];
        // WebSocket cannot pad a message of 127 bytes to 128.
        let most_apart = if layer == PaddingLayer::Record { 0 } else { 4 };
        for figure in ["top_1", "top_5", "among", "unique"] {
            let [one, other] = [what_if, &known].map(|figures| figures["after_pruning"][figure].as_u64().unwrap());
            assert!(one.abs_diff(other) <= most_apart, "{policy}: {figure} {one} and {other}");
        }
    }
}

#[test]
fn commands_padded_by_what_if_leave_the_other_figures_as_they_are() {
    let mut scenario = scenario("none");
    scenario.test.commands = 60;
    scenario.replies.mode = ReplyMode::PerAction;
    let home = Home::learned(&scenario, SEED);
    let plain = home.figures("model.toml", &["--quiet"]);
    let table = PaddingPolicy::Table { buckets: vec![150, 300, 700] };
    let file = home.path("table.json");
    fs::write(&file, PolicyFile::new(table.clone(), None).to_json().unwrap()).unwrap();
    let file = file.to_str().unwrap();
    let mut padded = home.figures("model.toml", &["--quiet", "--what-if", file]);
    let what_if = padded.as_object_mut().unwrap().remove("what_if").unwrap();
    assert_eq!(padded, plain);
    let truths = sizeleak_simulator::simulate(&scenario, SEED).unwrap().test.truths;
    let bytes: u64 = truths.iter().map(|truth| truth.plaintext_size as u64).sum();
    let with_padding: u64 = truths.iter().map(|truth| table.padded(truth.plaintext_size as u64).unwrap()).sum();
    assert_eq!((&what_if["commands"], &what_if["bytes"]), (&60.into(), &bytes.into()));
    assert_eq!(what_if["added_bytes"], with_padding - bytes);
    assert_eq!(what_if["overhead"], (with_padding - bytes) as f64 / bytes as f64);
    let right = |figures: &Value, when: &str| first_right(&figures[when]).0;
    assert!(right(&what_if, "before_pruning") < 0.5 * right(&plain, "before_pruning"), "{what_if}");
    assert!(right(&what_if, "after_pruning") > right(&what_if, "before_pruning"), "replies still tell something");
    let text = String::from_utf8(home.evaluate("model.toml", &["--quiet", "--what-if", file]).stdout).unwrap();
    let added =
        format!("if commands were padded (table of 3 buckets): {} bytes more in 60 commands", with_padding - bytes);
    assert!(text.contains(&added) && text.contains("as captured"), "{text}");
    // Padding that hides everything leaves the guess, however large it is.
    let hidden = home.figures("model.toml", &["--quiet", "--what-if", "constant:100000000"]);
    let hidden = &hidden["what_if"]["before_pruning"];
    let of = |figure: &str| hidden[figure].as_u64().unwrap();
    assert_eq!((of("unexplained"), of("among") + of("undecided")), (0, 60), "{hidden}");
    // Padding by nothing changes nothing, and the same chance gives the same bytes.
    let none = home.figures("model.toml", &["--quiet", "--what-if", "none"]);
    assert_eq!(
        (&none["what_if"]["after_pruning"], &none["what_if"]["added_bytes"]),
        (&plain["after_pruning"], &0.into())
    );
    let random = || home.evaluate("model.toml", &["--quiet", "--format=json", "--what-if", "random:40"]).stdout;
    assert_eq!(random(), random());
}

#[test]
fn unusable_policies_are_refused_in_one_sentence() {
    let mut scenario = scenario("none");
    (scenario.learn.random, scenario.test.commands) = (0, 5);
    let home = Home::learned(&scenario, SEED);
    let what_if = |policy: &str| home.evaluate("model.toml", &["--quiet", "--what-if", policy]);
    assert_fails(&what_if("multiple"), 2, &["`multiple` is no file", "no padding policy"]);
    fs::write(home.path("cut.json"), r#"{"version":1,"policy":{"kind":"table","buck"#).unwrap();
    assert_fails(&what_if(home.path("cut.json").to_str().unwrap()), 1, &["cut.json", "cannot be read"]);
    home.add_policy(&home, &PaddingPolicy::Padme);
    assert_fails(&what_if("padme"), 2, &["padded already"]);
    let learned = home.learn("other.toml", &["--quiet", "--padding", "constant:0"]);
    assert_fails(&learned, 2, &["constant:0"]);
    // A policy that is not the one that pads is doubted.
    let learned = home.learn("other.toml", &["--padding", "constant:1000"]);
    assert!(unbroken(&learned).contains("42 of 42 labelled commands have a size that `--padding` does not pad to"));
}
