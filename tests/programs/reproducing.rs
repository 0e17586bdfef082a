//! `sizeleak reproduce paper` prints the published figures beside both procedures', the same for the same seed.

use std::process::Output;

use serde_json::Value;
use support::programs::{GATEWAY, sizeleak, stderr, stdout};

fn reproduce(more: &[&str]) -> Output {
    let output = sizeleak("reproduce paper --commands 40").args(more).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

#[test]
fn both_procedures_are_judged_on_the_same_homes_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let json: Value = serde_json::from_slice(&reproduce(&["--json", "-o", path]).stdout).unwrap();
    let published = json["published"]["truth_among_after_pruning"]["share"].as_f64().unwrap();
    assert!((published - 0.912).abs() < 0.0005);
    let homes = json["homes"].as_array().unwrap();
    let protocols: Vec<&str> = homes.iter().map(|home| home["protocol"].as_str().unwrap()).collect();
    assert_eq!(protocols, ["websocket", "mqtt", "http"]);
    for home in homes {
        let share = |procedure: &str, figure: &str| home[procedure][figure]["share"].as_f64().unwrap();
        assert_eq!(home["ours"]["truth_among"]["of"], 40);
        assert!(share("ours", "truth_among_after_pruning") > share("papers_procedure", "truth_among_after_pruning"));
        let pruned = |procedure: &str| home[procedure]["mean_candidates_after_pruning"].as_f64().unwrap();
        assert!(pruned("ours") < home["ours"]["mean_candidates"].as_f64().unwrap());
        assert!(share("ours", "first_right") < home["possible"]["first_right"].as_f64().unwrap() + 0.2);
    }
    // The same figures as by hand.
    let home = folder.path().join("websocket");
    let mut evaluate = sizeleak("evaluate --quiet --json --set pruner.mode=paper");
    evaluate.arg(home.join("test.pcap")).args(["--gateway", GATEWAY]);
    evaluate.arg("--model").arg(home.join("papers-model.toml")).arg("--labels").arg(home.join("test.csv"));
    let by_hand: Value = serde_json::from_slice(&stdout(&mut evaluate)).unwrap();
    let of_paper = &homes[0]["papers_procedure"];
    assert_eq!(by_hand["before_pruning"]["precision"], of_paper["truth_among"]["share"]);
    assert_eq!(by_hand["after_pruning"]["top_1"], of_paper["first_right_after_pruning"]["part"]);
    assert_eq!(by_hand["after_pruning"]["intervals"]["precision"], of_paper["truth_among_after_pruning"]["interval"]);
}

#[test]
fn table_is_the_same_for_a_seed_and_fits_a_screen() {
    let (one, other) = (reproduce(&["--seed", "5"]), reproduce(&["--seed", "5", "--quiet"]));
    assert!(one.stdout == other.stdout && other.stderr.is_empty());
    let text = String::from_utf8(one.stdout).unwrap();
    assert!(text.contains("98.4 %") && text.contains("91.2 %"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(String::from_utf8(one.stderr).unwrap().contains("took"));
}
