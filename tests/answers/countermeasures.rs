//! Dummy commands and replies of one form: what an attack by the whole pipeline finds in real TLS is what the audit says.

use serde_json::Value;
use sizeleak_simulator::Scenario;
use sizeleak_simulator::scenario::{ReplyMode, ReplyPadding};
use support::home::{Home, run};
use support::programs::{sizeleak, stderr};

const SEED: u64 = 25;

/// A home without replies.
fn without_replies() -> Scenario {
    let mut scenario = Scenario::default();
    scenario.replies.mode = ReplyMode::None;
    scenario.test.commands = 400;
    scenario
}

/// A home whose replies tell some actions apart by their sizes, and are all seen.
fn with_replies() -> Scenario {
    let mut scenario = Scenario { replies: Scenario::default().replies, ..without_replies() };
    (scenario.replies.loss, scenario.replies.coalesce) = (0.0, 0.0);
    let of_actions = [0, 0, 7, 7, 12, 12, 12].map(|bytes| vec![ReplyPadding { min: bytes, max: bytes }]);
    for (action, replies) in scenario.actions.iter_mut().zip(of_actions) {
        action.replies = Some(replies);
    }
    scenario
}

/// What the audit of a home says with these options.
fn audited(home: &Home, options: &[&str]) -> Value {
    let output = run(sizeleak("pad --format=json --quiet --model").arg(home.path("model.toml")).args(options));
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn named(leak: &Value) -> f64 {
    leak["command"]["named"].as_f64().unwrap()
}

/// Asserts that a share is what so many of so many show, within four standard deviations.
fn assert_shown(what: &str, share: f64, count: f64, of: f64) {
    let (shown, deviation) = (count / of, (share * (1.0 - share).max(0.0) / of).sqrt());
    assert!((shown - share).abs() <= 4.0 * deviation + 1e-9, "{what}: {shown} of {of}, not {share}");
}

/// Commands whose first candidate is right, and all that were found.
fn found(figures: &Value) -> (f64, f64) {
    let number = |value: &Value| value.as_f64().unwrap();
    (number(&figures["after_pruning"]["top_1"]), number(&figures["matched"]) + number(&figures["spurious"]))
}

#[test]
fn replies_of_one_form_leave_an_attack_what_the_audit_says() {
    let plain = Home::learned(&with_replies(), SEED);
    let one_size = audited(&plain, &["--replies", "one-size"]);
    let (right, all) = found(&plain.figures("model.toml", &["--quiet"]));
    assert_shown("as they are", named(&one_size["before"]["with_replies"]), right, all);

    let mut of_one_size = with_replies();
    of_one_size.padding.replies = "constant:128".parse().unwrap();
    for (name, scenario, expected) in [
        ("one size", of_one_size, named(&one_size["after"]["with_replies"])),
        ("none", without_replies(), named(&audited(&plain, &["--replies", "none"])["after"]["with_replies"])),
    ] {
        let home = Home::learned(&scenario, SEED);
        let (right, all) = found(&home.figures("model.toml", &["--quiet"]));
        assert_shown(name, expected, right, all);
        assert!(expected < named(&one_size["before"]["with_replies"]) - 0.1, "replies of their own sizes say more");
    }
}

#[test]
fn commands_among_dummies_are_named_in_as_many_messages_as_the_audit_says() {
    let mut scenario = without_replies();
    scenario.command.dummies = 0.3;
    let home = Home::learned(&scenario, SEED);
    let audit = audited(&home, &["--dummies", "30%"]);
    let (right, all) = found(&home.figures("model.toml", &["--quiet"]));
    assert_shown("real ones", 0.7, 400.0, all);
    assert_shown("named", named(&audit["after"]["by_size"]), right, all);
    assert_shown("named of the real ones", named(&audit["before"]["by_size"]), right, 400.0);
}
