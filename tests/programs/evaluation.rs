//! `sizeleak evaluate` as a user runs it, on simulated homes.

use std::fs;
use std::process::Output;

use support::home::{Home, run, small};
use support::programs::{GATEWAY, root, sizeleak, stderr};

/// The first paragraph, on one line.
fn first_sentence(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.split("\n\n").next().unwrap().replace('\n', " ")
}

#[test]
fn first_sentence_says_what_the_figures_and_the_labels_say() {
    let home = Home::learned(&small(), 3);
    let figures = home.figures("model.toml", &["--quiet"]);
    let conclusion = &figures["conclusion"];
    let named = figures["after_pruning"]["top_1"].as_f64().unwrap() / 40.0;
    assert_eq!(conclusion["named"], named);
    assert_eq!(conclusion["interval"], figures["after_pruning"]["intervals"]["top_1"]);
    let labels = fs::read_to_string(home.path("test.csv")).unwrap();
    let mut rows: Vec<&str> = labels.lines().skip(1).map(|line| line.split_once(',').unwrap().1).collect();
    rows.sort_unstable();
    let most = rows.chunk_by(|one, next| one == next).map(<[&str]>::len).max().unwrap();
    assert_eq!(conclusion["baseline"]["commands"], most);
    assert!(named > 2.0 * most as f64 / 40.0, "{conclusion}");

    let sentence = first_sentence(&home.evaluate("model.toml", &["--quiet"]));
    assert_eq!(sentence, conclusion["sentence"]);
    let start =
        format!("An observer who sees only sizes and replies names the exact actions of {:.1} % (", 100.0 * named);
    let end = format!(" is right in {:.1} %.", 100.0 * most as f64 / 40.0);
    assert!(sentence.starts_with(&start) && sentence.ends_with(&end), "{sentence}");
    let sizes = first_sentence(&home.evaluate("model.toml", &["--quiet", "--set", "pruner.mode=none"]));
    assert!(sizes.starts_with("An observer who sees only sizes names"), "{sizes}");
}

/// A home whose commands have one action each, and a model that was learned from them: it knows kinds, no sizes of actions.
pub(crate) fn home_with_kinds(seed: u64) -> Home {
    let mut scenario = small();
    scenario.command.most_actions = 1;
    let home = Home::new(&scenario, seed);
    let labels = fs::read_to_string(home.path("learn.csv")).unwrap();
    let is_header_or_single = |line: &&str| {
        let mut counts: Vec<&str> = line.split(',').skip(1).filter(|count| *count != "0").collect();
        line.starts_with("time") || (counts.pop() == Some("1") && counts.is_empty())
    };
    let single: Vec<&str> = labels.lines().filter(is_header_or_single).collect();
    assert!(single.len() > 10, "{}", single.len());
    fs::write(home.path("learn.csv"), single.join("\n")).unwrap();
    let learned = home.learn("kinds.toml", &["--labelled-only"]);
    assert!(learned.status.success(), "{}", stderr(&learned));
    home
}

#[test]
fn kinds_of_commands_are_not_called_exact_actions() {
    let output = home_with_kinds(3).evaluate("kinds.toml", &[]);
    let sentence = first_sentence(&output);
    assert!(sentence.contains(" names the kind, as it was labelled, of "), "{sentence} {}", stderr(&output));
}

#[test]
fn shares_have_intervals() {
    let home = Home::learned(&small(), 3);
    let figures = home.figures("model.toml", &["--quiet"]);
    for when in ["before_pruning", "after_pruning"] {
        let score = &figures[when];
        let [low, high] = ["low", "high"].map(|end| score["intervals"]["top_1"][end].as_f64().unwrap());
        let share = score["top_1"].as_f64().unwrap() / 40.0;
        assert!(low < share && share < high && high - low > 0.1 && high - low < 0.4, "{low} {share} {high}");
    }
    let table = String::from_utf8(home.evaluate("model.toml", &["--quiet"]).stdout).unwrap();
    let line = table.lines().find(|line| line.starts_with("truth the first candidate")).unwrap();
    assert_eq!(line.matches('–').count(), 2, "{line}");
}

#[test]
fn figures_follow_from_the_details() {
    let home = Home::learned(&small(), 4);
    let details = home.path("details.csv");
    let figures = home.figures("model.toml", &["--details", details.to_str().unwrap()]);
    let mut reader = csv::Reader::from_path(details).unwrap();
    let rows: Vec<std::collections::HashMap<String, String>> = reader.deserialize().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows.len(), 40);
    for (when, key) in [("before", "before_pruning"), ("after", "after_pruning")] {
        let counts: Vec<u64> = rows.iter().map(|row| row[&format!("{when}_candidates")].parse().unwrap()).collect();
        let among = rows.iter().filter(|row| row[when] == "listed" || row[when] == "unlisted").count();
        assert_eq!(figures[key]["among"], among);
        assert_eq!(figures[key]["candidates"]["max"], *counts.iter().max().unwrap());
        assert_eq!(figures[key]["unique"], counts.iter().filter(|count| **count == 1).count());
        let mean = counts.iter().sum::<u64>() as f64 / 40.0;
        assert!((figures[key]["candidates"]["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
    }
    let first = rows.iter().filter(|row| row["first"] == row["truth"]).count();
    assert_eq!(figures["after_pruning"]["top_1"], first);
    assert_eq!(rows.iter().filter(|row| row["rank"] == "1").count(), first);
    let on: u64 = rows
        .iter()
        .filter_map(|row| row["truth"].strip_prefix("on="))
        .map(|text| text.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(figures["actions"][0]["count"], on);
}

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

#[test]
fn custom_pipeline_is_evaluated() {
    let home = Home::learned(&small(), 4);
    let standard = home.figures("model.toml", &[]);
    let stages = "[[stage]]\nrun = \"capture\"\n[[stage]]\nrun = \"flow-filter\"\n[[stage]]\nrun = \"record-sizer\"\n\
        [[stage]]\nrun = \"command-segmenter\"\n[[stage]]\nrun = \"epsilon-corrector\"\n\
        [[stage]]\nrun = \"decomposer\"\n";
    let pipeline = home.path("pipeline.toml");
    let given = ["--pipeline", pipeline.to_str().unwrap()];
    fs::write(&pipeline, format!("{stages}[[stage]]\nrun = \"pruner\"\nmode = \"none\"\n")).unwrap();
    let unpruned = home.figures("model.toml", &given);
    assert_eq!(unpruned["after_pruning"], standard["before_pruning"]);
    fs::write(&pipeline, stages).unwrap();
    let without = home.figures("model.toml", &given);
    assert_eq!(
        (&without["before_pruning"], &without["after_pruning"]),
        (&serde_json::Value::Null, &standard["before_pruning"])
    );
    let set = home.figures("model.toml", &["--set", "pruner.mode=none"]);
    assert_eq!(set["after_pruning"], standard["before_pruning"]);
}

#[test]
fn sessions_without_a_handshake_are_assumed_to_use_the_models_cipher_suite() {
    let mut scenario = small();
    let home = Home::learned(&small(), 3);
    scenario.capture.mid_stream = true;
    let mid_stream = Home::new(&scenario, 3);
    fs::copy(home.path("model.toml"), mid_stream.path("model.toml")).unwrap();
    let output = mid_stream.evaluate("model.toml", &["--format=json"]);
    assert!(stderr(&output).contains("its handshake was not seen"), "{}", stderr(&output));
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figures, home.figures("model.toml", &[]));

    assert!(mid_stream.learn("wire.toml", &[]).status.success());
    assert_eq!(mid_stream.figures("wire.toml", &[])["matched"], 40);
    fs::copy(mid_stream.path("wire.toml"), home.path("wire.toml")).unwrap();
    // A session whose suite is known, of the same service: the model was learned on what this service uses.
    let known = home.evaluate("wire.toml", &["--format=json"]);
    assert!(known.status.success() && stderr(&known).contains("taken to be of the same suite"), "{}", stderr(&known));
    assert_eq!(home.figures("wire.toml", &[])["matched"], 40);
}

#[test]
fn commands_that_were_learned_are_named_whatever_their_capture() {
    let home = Home::new(&small(), 5);
    let labels = fs::read_to_string(home.path("learn.csv")).unwrap();
    let half = |name: &str, parity: usize| {
        let lines = labels.lines().enumerate().filter(|(at, _)| *at == 0 || at % 2 == parity);
        fs::write(home.path(name), lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n")).unwrap();
    };
    half("odd.csv", 1);
    half("even.csv", 0);
    let capture = home.path("learn.pcap");
    let mut learn = sizeleak("learn");
    learn.arg(&capture).arg("--labels").arg(home.path("odd.csv")).args(["--gateway", GATEWAY]);
    learn.arg("--inventory").arg(home.path("inventory.toml")).arg("-o").arg(home.path("odd.toml"));
    let output = run(&mut learn);
    assert!(output.status.success(), "{}", stderr(&output));
    let warned = |capture: &str, labels: &str| {
        let mut evaluate = sizeleak("evaluate");
        evaluate.arg(home.path(capture)).arg("--labels").arg(home.path(labels));
        evaluate.args(["--gateway", GATEWAY]).arg("--model").arg(home.path("odd.toml"));
        let output = run(&mut evaluate);
        assert!(output.status.success(), "{}", stderr(&output));
        let text = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        text.split_once("the model was learned from ").map(|(_, rest)| rest.split(':').next().unwrap().to_owned())
    };
    let learned = labels.lines().count() / 2;
    assert_eq!(warned("learn.pcap", "odd.csv"), Some(format!("{learned} of these {learned} commands")));
    assert_eq!(warned("learn.pcap", "even.csv"), None, "the usual split of a notebook");
    // Under another name, and with other bytes.
    let mut copy = fs::read(&capture).unwrap();
    // A bound of the length of packets that none reaches.
    copy[16..20].copy_from_slice(&200_000_u32.to_le_bytes());
    fs::write(home.path("copy.pcap"), copy).unwrap();
    assert_eq!(warned("copy.pcap", "odd.csv"), Some(format!("{learned} of these {learned} commands")));
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
    let words: Vec<&str> = document.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    for (report, is_quoted) in [("evaluate", false), ("evaluate standard pruner.mode=none", false), ("measure", true)] {
        let mut found = Vec::new();
        let traffic = "test.pcap --labels test.csv --model model.toml -q --format=json";
        keys(&home.json(&format!("{report} {traffic}")), &mut found);
        let is_there = |key: &&String| {
            if is_quoted { document.contains(&format!("`{key}`")) } else { words.contains(&key.as_str()) }
        };
        let unknown: Vec<&String> = found.iter().filter(|key| !is_there(key)).collect();
        assert!(found.len() > 60 && unknown.is_empty(), "{report}: {unknown:?}");
    }
}
