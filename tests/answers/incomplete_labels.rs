//! Labels of a part of the commands: what has no label is no proof of noise. Simulated homes with real TLS whose labels
//! are thinned. `cargo test --test answers incomplete_labels:: -- --nocapture` shows the figures.

use std::fs;

use serde_json::Value;
use sizeleak_simulator::Scenario;
use sizeleak_simulator::scenario::Framing;
use support::home::Home;
use support::programs::stderr;

/// Keeps about this share of the labels in percent, always the same.
fn thin_labels(home: &Home, percent: u64) {
    let path = home.path("learn.csv");
    let all = fs::read_to_string(&path).unwrap();
    let mut state = 20_261_121_u64;
    let mut is_kept = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 100 < percent
    };
    let kept: Vec<&str> =
        all.lines().enumerate().filter(|(at, _)| *at == 0 || is_kept()).map(|(_, line)| line).collect();
    eprintln!("{} of {} labels", kept.len() - 1, all.lines().count() - 1);
    fs::write(&path, kept.join("\n") + "\n").unwrap();
}

/// A home whose labels are thinned, its figures, and what `learn` said.
fn learned(framing: Framing, seed: u64, percent: u64, more: &[&str]) -> (Value, String) {
    let mut scenario = Scenario::default();
    scenario.session.framing = framing;
    let home = Home::new(&scenario, seed);
    thin_labels(&home, percent);
    let learned = home.learn("model.toml", more);
    assert!(learned.status.success(), "{}", stderr(&learned));
    let figures = home.figures("model.toml", &[]);
    let after = &figures["after_pruning"];
    eprintln!(
        "{framing:?}, {percent} % {more:?}: {} first before pruning, {} after; candidates {:.1} before, {:.1} after; \
         {} missed, {} spurious",
        figures["before_pruning"]["top_1"],
        after["top_1"],
        mean(&figures, "before_pruning"),
        mean(&figures, "after_pruning"),
        figures["missed"],
        figures["spurious"]
    );
    let said = stderr(&learned) + &String::from_utf8(learned.stdout).unwrap();
    (figures, said)
}

/// The mean number of candidates.
fn mean(figures: &Value, when: &str) -> f64 {
    figures[when]["candidates"]["mean"].as_f64().unwrap()
}

/// The replies halve the candidates, as with all labels.
#[test]
fn records_without_a_label_take_away_neither_replies_nor_commands() {
    for (framing, seed) in [Framing::Websocket, Framing::Mqtt, Framing::Http].into_iter().zip(61_101..) {
        for percent in [20, 35, 60] {
            let (figures, said) = learned(framing, seed, percent, &[]);
            assert_eq!((&figures["missed"], &figures["spurious"]), (&0.into(), &0.into()));
            if framing != Framing::Http {
                assert!(said.contains("replies: 1 per action"), "{said}");
                assert!(mean(&figures, "after_pruning") < 0.6 * mean(&figures, "before_pruning"));
            }
        }
    }
}

/// Whoever labels a part of a capture usually labels its beginning.
#[test]
fn commands_after_the_last_label_take_away_no_replies() {
    let mut scenario = Scenario::default();
    (scenario.learn.repeats, scenario.learn.random) = (1, 300);
    let home = Home::new(&scenario, 61_111);
    let all = fs::read_to_string(home.path("learn.csv")).unwrap();
    let first: Vec<&str> = all.lines().take(81).collect();
    fs::write(home.path("learn.csv"), first.join("\n") + "\n").unwrap();
    let learned = home.learn("model.toml", &[]);
    assert!(learned.status.success(), "{}", stderr(&learned));
    let said = stderr(&learned) + &String::from_utf8(learned.stdout).unwrap();
    assert!(said.contains("replies: 1 per action"), "{said}");
}

#[test]
fn with_complete_labels_what_has_none_is_noise() {
    let (figures, said) = learned(Framing::Websocket, 61_101, 35, &["--labels-are-complete"]);
    assert!(said.contains("replies: their number does not depend on the number of actions"), "{said}");
    assert!(mean(&figures, "after_pruning") > 0.9 * mean(&figures, "before_pruning"));
    let (figures, said) = learned(Framing::Websocket, 61_101, 100, &["--labels-are-complete"]);
    assert!(said.contains("replies: 1 per action"), "{said}");
    assert_eq!((&figures["missed"], &figures["spurious"]), (&0.into(), &0.into()));
}
