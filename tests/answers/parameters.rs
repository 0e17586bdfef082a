//! Homes whose actions carry numbers and names of rooms, so that their sizes vary: the distributions that are learned,
//! and what they bring. `cargo test --test answers parameters:: -- --nocapture` shows the figures.

use std::fs;

use serde_json::Value;
use sizeleak_model::{Action, Model};
use sizeleak_simulator::Scenario;
use support::home::Home;
use support::programs::stderr;

/// The share of commands whose true actions are among the candidates, at least.
const LEAST: f64 = 0.97;

/// Names of rooms, 3 to 14 bytes in UTF-8.
const ROOMS: &str =
    r#"{ name = ["Bad", "Flur", "Küche", "Diele", "Keller", "Wohnzimmer", "Schlafzimmer", "Gästezimmer"] }"#;

const COMMANDS: usize = 300;

fn scenario(framing: &str) -> Scenario {
    let text = format!(
        r#"
[session]
framing = "{framing}"

[[action]]
name = "on"
set = "on"
parameter = {ROOMS}

[[action]]
name = "off"
set = "off"
parameter = {ROOMS}

[[action]]
name = "toggle"
set = "toggle"

[[action]]
name = "timer"
set = {{ on = 300 }}

[[action]]
name = "dim"
set = "level"
parameter = {{ number = {{ min = 1, max = 100 }} }}

[[action]]
name = "white"
set = "ct"
parameter = {{ number = {{ min = 900, max = 6500 }} }}

[[action]]
name = "colour"
set = {{ rgb = "ffa030" }}
parameter = {{ number = {{ min = 0, max = 255 }} }}

[learn]
repeats = 3
random = 250

[test]
commands = {COMMANDS}
"#
    );
    Scenario::from_toml(&text).unwrap()
}

/// A model file without the distributions of its actions.
fn without_sizes(text: &str) -> String {
    let kept = text.lines().filter(|line| !line.starts_with("sizes = "));
    kept.fold(String::new(), |text, line| text + line + "\n")
}

fn share(figures: &Value, when: &str, what: &str) -> f64 {
    figures[when][what].as_f64().unwrap() / if what == "precision" { 1.0 } else { COMMANDS as f64 }
}

fn line(name: &str, figures: &Value) -> String {
    let [before, after] = ["before_pruning", "after_pruning"].map(|when| share(figures, when, "precision") * 100.0);
    let [error, chance] =
        ["expected_error", "by_chance"].map(|what| figures["after_pruning"]["calibration"][what].as_f64().unwrap());
    format!(
        "{name}: among {before:.1} % before, {after:.1} % after pruning; first {:.1} %; calibration error {error:.4}, \
         {chance:.4} by chance",
        share(figures, "after_pruning", "top_1") * 100.0
    )
}

/// The distributions find nearly every command, and many that the most frequent sizes alone miss.
fn holds(framing: &str, seed: u64) {
    let home = Home::new(&scenario(framing), seed);
    let learned = home.learn("model.toml", &[]);
    assert!(learned.status.success(), "{}", stderr(&learned));
    let summary = String::from_utf8_lossy(&learned.stdout).into_owned() + &stderr(&learned);
    eprintln!("{summary}");
    assert!(!summary.contains("do not add up"), "{summary}");
    assert!(summary.contains("varying from"), "{summary}");

    let text = fs::read_to_string(home.path("model.toml")).unwrap();
    let model = Model::from_toml(&text).unwrap();
    let varying: Vec<&str> =
        model.actions.iter().filter(|action| action.varies()).map(|action| action.name.as_str()).collect();
    for name in ["on", "off"] {
        assert!(varying.contains(&name), "{varying:?}");
    }
    for name in ["toggle", "timer"] {
        assert!(!varying.contains(&name), "{varying:?}");
    }
    let mean = |name: &str| {
        let action: &Action = model.actions.iter().find(|action| action.name == name).unwrap();
        action.sizes().map(|(size, share)| size as f64 * share).sum::<f64>()
    };
    // The names are the same; the actions' own names differ by a byte.
    assert!((mean("off") - mean("on") - 1.0).abs() < 1.5, "{} and {}", mean("off"), mean("on"));

    fs::write(home.path("single.toml"), without_sizes(&text)).unwrap();
    let [varying, single] = ["model.toml", "single.toml"].map(|model| home.figures(model, &[]));
    eprintln!("{}", line(&format!("{framing}, seed {seed}"), &varying));
    eprintln!("{}", line(&format!("{framing}, seed {seed}, single sizes"), &single));
    let [found, found_by_single] = [&varying, &single].map(|figures| share(figures, "after_pruning", "precision"));
    assert!(found >= LEAST, "{found}");
    assert!(found_by_single < found - 0.05, "{found_by_single} with single sizes, {found} with distributions");
    let [error, chance] =
        ["expected_error", "by_chance"].map(|what| varying["after_pruning"]["calibration"][what].as_f64().unwrap());
    assert!(error <= chance + 0.03, "calibration error {error}, {chance} by chance");
}

support::tests_of! { holds {
    websocket_with_names_and_numbers("websocket", 91_001);
    mqtt_with_names_and_numbers("mqtt", 91_002);
    http_with_names_and_numbers("http", 91_003);
} }
