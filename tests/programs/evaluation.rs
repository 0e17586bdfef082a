//! `sizeleak evaluate` as a user runs it, on simulated homes.

use std::fs;

use support::home::{Home, small};
use support::programs::root;

/// Credible sets grow with the probability they hold, and the confusion matrix contains every occurrence of an action.
#[test]
fn figures_are_consistent() {
    let home = Home::learned(&small(), 4);
    assert_eq!(home.evaluate("model.toml", &["--credible", "1.5"]).status.code(), Some(2));
    let [narrow, wide] = ["0.5", "0.95"].map(|share| home.figures("model.toml", &["--credible", share]));
    for when in ["before_pruning", "after_pruning"] {
        let set = |figures: &serde_json::Value, key: &str| figures[when]["credible_set"][key].as_f64().unwrap();
        assert!(set(&narrow, "coverage") <= set(&wide, "coverage"));
        let size = |figures: &serde_json::Value| figures[when]["credible_set"]["size"]["mean"].as_f64().unwrap();
        assert!(size(&narrow) < size(&wide));
        assert!(size(&wide) <= wide[when]["candidates"]["mean"].as_f64().unwrap());
        let bins = wide[when]["calibration"]["bins"].as_array().unwrap();
        assert_eq!(bins.iter().map(|bin| bin["answers"].as_u64().unwrap()).sum::<u64>(), 40);
        let known = &wide[when]["information"];
        let entropy = |key: &str| known[key].as_f64().unwrap();
        assert!((entropy("prior_bits") - entropy("posterior_bits") - entropy("leaked_bits")).abs() < 1e-9);
    }
    let confusion = &wide["confusion"];
    for (at, action) in wide["actions"].as_array().unwrap().iter().enumerate() {
        let row = confusion["taken"][at].as_array().unwrap().iter().map(|times| times.as_f64().unwrap()).sum::<f64>();
        let all = row + confusion["missed"][at].as_f64().unwrap();
        assert!((all - action["count"].as_f64().unwrap()).abs() < 1e-9, "{confusion}");
    }
}

/// With truncated lists the truth is still found or reported as undecided, and never found more often.
#[test]
fn truncated_lists_never_improve_the_figures() {
    let home = Home::learned(&small(), 4);
    let whole = home.figures("model.toml", &[]);
    for limit in ["decomposer.limit=1", "decomposer.limit=20"] {
        let cut = home.figures("model.toml", &["--set", limit, "--quiet"]);
        for when in ["before_pruning", "after_pruning"] {
            let count = |figures: &serde_json::Value, key: &str| figures[when][key].as_u64().unwrap();
            let cut_lists = count(&cut, "cut_lists");
            assert!(cut_lists > if when == "before_pruning" { 5 } else { 0 }, "{limit}, {when}: {cut_lists}");
            assert!(count(&cut, "among") <= count(&whole, "commands"));
            assert!(count(&cut, "among") + count(&cut, "undecided") >= count(&whole, "among"), "{cut}");
        }
        assert!(cut["before_pruning"]["among"].as_u64().unwrap() <= whole["before_pruning"]["among"].as_u64().unwrap());
    }
}

/// All keys of a JSON value, at any depth.
fn keys(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(key, value)| {
            found.push(key.clone());
            keys(value, found);
        }),
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_key_of_a_report_is_in_the_document() {
    let home = Home::bundled();
    let document = fs::read_to_string(root().join("docs/reference.md")).unwrap();
    for report in ["evaluate", "evaluate standard pruner.mode=none", "measure"] {
        let mut found = Vec::new();
        let traffic = "test.pcap --labels test.csv --model model.toml -q --format=json";
        keys(&home.json(&format!("{report} {traffic}")), &mut found);
        let unknown: Vec<&String> = found.iter().filter(|key| !document.contains(&format!("`{key}`"))).collect();
        assert!(found.len() > 60 && unknown.is_empty(), "{report}: {unknown:?}");
    }
}
