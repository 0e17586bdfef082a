//! `sizeleak pad` of the bundled model: what is printed is what the tables and policies do.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::programs::{example, root, sizeleak, stderr, stdout, write};

/// Twelve plugs and four lamps, as the bundled scenario draws their commands.
const AS_DRAWN: [&str; 5] = ["--prior", "devices", "--decay", "0.75", "--without-epsilon"];

/// A command of the program, asked of the bundled model in a folder.
fn asked(command: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut asked = sizeleak(command);
    asked.current_dir(folder).arg("--model").arg(root().join(example("model.toml"))).args(arguments);
    asked
}

fn pad(folder: &Path, arguments: &[&str]) -> Output {
    asked("pad", folder, arguments).output().unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let report = stdout(asked("pad", folder, arguments).arg("--format=json"));
    serde_json::from_slice(&report).unwrap()
}

fn text(folder: &Path, arguments: &[&str]) -> String {
    String::from_utf8(stdout(&mut asked("pad", folder, arguments))).unwrap()
}

fn percent(value: &Value) -> f64 {
    value.as_f64().unwrap() * 100.0
}

/// Whether two figures in percent agree within 0.3 points.
fn is_near(value: &Value, expected: f64) -> bool {
    (percent(value) - expected).abs() <= 0.3
}

/// A home of few commands.
fn small_home(folder: &Path) {
    let home = "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\", \"off\", \"toggle\", \"timer\"]\n";
    write(folder, "small.toml", home);
}

#[test]
fn padme_leaves_a_fifth_of_commands_and_nearly_all_numbers_of_actions() {
    let folder = tempfile::tempdir().unwrap();
    let report = json(folder.path(), &[&["--policy", "padme"], &AS_DRAWN[..]].concat());
    let (before, after) = (&report["unpadded"], &report["padded"]["by_size"]);
    assert!(is_near(&before["command"]["named"], 65.8) && is_near(&before["command"]["guessing"], 5.64));
    assert!(is_near(&after["command"]["named"], 19.6) && is_near(&after["number"]["named"], 97.9));
    assert!(is_near(&report["padded"]["added_share"], 3.36));
}

#[test]
fn the_best_multiple_and_the_best_table_are_far_below_padme_at_its_cost() {
    let folder = tempfile::tempdir().unwrap();
    let multiples = (2..20)
        .map(|bytes| json(folder.path(), &[&["--policy", &format!("multiple:{bytes}")], &AS_DRAWN[..]].concat()));
    let within = multiples.filter(|report| percent(&report["padded"]["added_share"]) <= 3.5);
    let best = within.map(|report| percent(&report["padded"]["by_size"]["command"]["named"])).fold(100.0, f64::min);
    assert!((best - 14.4).abs() <= 0.3, "{best}");
    let table = json(folder.path(), &[&["--budget", "3.5%"], &AS_DRAWN[..]].concat());
    assert!(is_near(&table["padded"]["by_size"]["command"]["named"], 10.1));
    assert!(percent(&table["padded"]["added_share"]) <= 3.5 + 1e-9);
}

#[test]
fn five_per_cent_above_guessing_costs_more_than_two_fifths_with_multiples() {
    let folder = tempfile::tempdir().unwrap();
    // Of all multiples, the cheapest that reaches it (`tests/crates/audit/padding_bundled_home.rs`).
    let report = json(folder.path(), &[&["--policy", "multiple:196"], &AS_DRAWN[..]].concat());
    assert!(
        is_near(&report["padded"]["by_size"]["command"]["named"], 5.92)
            && is_near(&report["padded"]["added_share"], 44.8)
    );
}

#[test]
fn a_written_table_is_what_was_reported_and_obeys_its_rules_under_epsilon() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["--table", "t.json", "--table", "t.c", "--table", "t.rs"];
    let rules = ["--budget", "20%", "--least-set", "10", "--most-posterior", "60%"];
    let best = json(folder.path(), &[&rules[..], &files].concat());
    let command = &best["padded"]["by_size"]["command"];
    assert!(command["smallest_set"].as_f64().unwrap() >= 10.0, "{command}");
    assert!(percent(&command["worst_posterior"]) <= 60.0 + 1e-6, "{command}");
    let again = json(folder.path(), &["--policy", "t.json"]);
    assert_eq!((&again["padded"]["by_size"], &again["policy"]), (&best["padded"]["by_size"], &best["policy"]));
    let first = best["policy"]["buckets"][0].to_string();
    for source in ["t.c", "t.rs"] {
        let source = fs::read_to_string(folder.path().join(source)).unwrap();
        assert!(source.contains("padded_size") && source.contains(&first), "{source}");
    }
}

#[test]
fn a_target_is_met_under_epsilon() {
    let folder = tempfile::tempdir().unwrap();
    let best = json(folder.path(), &["--target", "50%-of-guessing"]);
    let command = &best["padded"]["by_size"]["command"];
    assert!(command["named"].as_f64().unwrap() <= 1.5 * command["guessing"].as_f64().unwrap() + 1e-9);
}

#[test]
fn guessing_itself_is_a_target_that_one_bucket_reaches() {
    let folder = tempfile::tempdir().unwrap();
    small_home(folder.path());
    for epsilon in [&["--without-epsilon"][..], &[]] {
        let request = ["--inventory", "small.toml", "--target", "0%-of-guessing"];
        for home in [&request[..], &request[2..]] {
            let best = json(folder.path(), &[home, epsilon].concat());
            let command = &best["padded"]["by_size"]["command"];
            let [named, guessing] = ["named", "guessing"].map(|key| command[key].as_f64().unwrap());
            assert!((named / guessing - 1.0).abs() < 1e-9, "{command}");
        }
    }
    let refused = pad(folder.path(), &["--target", "1%"]);
    assert!(stderr(&refused).contains("no table reaches the target of 1.0 %"), "{}", stderr(&refused));
}

#[test]
fn no_point_of_a_curve_is_below_guessing() {
    let folder = tempfile::tempdir().unwrap();
    small_home(folder.path());
    let curve = json(folder.path(), &["--inventory", "small.toml"]);
    let points = curve["points"].as_array().unwrap();
    assert!(points.len() > 20);
    for point in points {
        assert!(percent(&point["named"]) >= percent(&curve["guessing"]) - 1e-6, "{point}");
    }
    let csv = text(folder.path(), &["--inventory", "small.toml", "--format=csv"]);
    assert_eq!(csv.lines().count(), points.len() + 1);
    assert!(csv.starts_with("policy,added_bytes,added_share,megabytes_a_day,named,"));
}

#[test]
fn no_table_of_a_curve_is_listed_twice() {
    let folder = tempfile::tempdir().unwrap();
    small_home(folder.path());
    // Single actions of few sizes, few commands of several actions, many, and many whose sizes are nearly the same.
    let lamp = root().join("examples/lab/matter_lamp.toml").display().to_string();
    let bundled = root().join(example("model.toml")).display().to_string();
    for more in [
        &["--model", lamp.as_str()][..],
        &["--model", lamp.as_str(), "--without-epsilon"],
        &["--model", bundled.as_str(), "--inventory", "small.toml"],
        &["--model", bundled.as_str()],
    ] {
        let curve = stdout(sizeleak("pad --format=json").current_dir(folder.path()).args(more));
        let curve: Value = serde_json::from_slice(&curve).unwrap();
        let points = curve["points"].as_array().unwrap();
        let tables = points.iter().filter(|point| point["policy"].as_str().unwrap().starts_with("best "));
        let figures: Vec<[&Value; 3]> =
            tables.map(|table| ["policy", "added_bytes", "named"].map(|key| &table[key])).collect();
        assert!(figures.len() > 1, "{more:?}");
        assert!(figures.windows(2).all(|pair| pair[0] != pair[1]), "{more:?}: {figures:?}");
    }
}

#[test]
fn random_padding_averages_out_unless_it_is_keyed() {
    let folder = tempfile::tempdir().unwrap();
    let report = json(folder.path(), &[&["--policy", "random:64"], &AS_DRAWN[..]].concat());
    let repeated = report["repeated"].as_array().unwrap();
    let once = percent(&report["padded"]["by_size"]["command"]["named"]);
    let last = percent(&repeated.last().unwrap()["named"]);
    assert!(once < 12.0 && last > 3.0 * once, "{once} {last}");
    let keyed = json(folder.path(), &[&["--policy", "keyed-random:64"], &AS_DRAWN[..]].concat());
    assert_eq!(keyed["padded"]["by_size"], report["padded"]["by_size"]);
    assert!(keyed["repeated"].as_array().unwrap().is_empty());
    assert!(percent(&keyed["named_with_known_key"]) > once, "whoever knows the key sees a table");
}

#[test]
fn countermeasures_are_compared_as_each_is_audited_alone() {
    let folder = tempfile::tempdir().unwrap();
    // Two devices of each kind.
    let home = fs::read_to_string(root().join(example("inventory.toml"))).unwrap();
    let home = home.replace("count = 12", "count = 2").replace("count = 4", "count = 2");
    write(folder.path(), "two.toml", home);
    for policy in ["none", "padme"] {
        let asked = ["--inventory", "two.toml", "--policy", policy];
        let compared = json(folder.path(), &[&asked[..], &["--countermeasures"]].concat());
        let compared = compared["countermeasures"].as_array().unwrap();
        assert_eq!(compared.len(), if policy == "none" { 13 } else { 14 });
        for (name, options) in [
            ("batches of 3", &["--batch", "3"][..]),
            ("delay of 10 s", &["--delay", "10"]),
            ("30 % dummies", &["--dummies", "30%"]),
            ("replies of one size", &["--replies", "one-size"]),
            (
                "delay of 60 s, 30 % dummies, one reply",
                &["--delay", "60", "--dummies", "0.3", "--replies", "one-reply"],
            ),
        ] {
            let name = if policy == "none" { name.to_owned() } else { format!("{policy}, {name}") };
            let alone = json(folder.path(), &[&asked[..], options].concat());
            let row = compared.iter().find(|row| row["name"] == name.as_str()).unwrap();
            assert_eq!((&alone["countermeasures"], &alone["after"]), (&row["name"], &row["effect"]));
            assert_eq!(alone["before"], compared[0]["effect"]);
        }
    }
}

#[test]
fn countermeasures_have_the_same_figures_as_the_audit_and_padding() {
    let folder = tempfile::tempdir().unwrap();
    let audit: Value = serde_json::from_slice(&stdout(&mut asked("audit", folder.path(), &["--format=json"]))).unwrap();
    let padded = json(folder.path(), &["--policy", "padme"]);
    let dummies = json(folder.path(), &["--policy", "padme", "--dummies", "20%", "--replies", "none"]);
    let figure = |report: &Value, path: &str| report.pointer(path).unwrap().as_f64().unwrap();
    let same = [
        (figure(&dummies, "/before/by_size/command/named"), figure(&audit, "/by_size/command/named")),
        (figure(&dummies, "/before/with_replies/kinds/named"), figure(&audit, "/with_replies/kinds/named")),
        (figure(&dummies, "/after/by_size/number/named"), 0.8 * figure(&padded, "/padded/by_size/number/named")),
        (
            figure(&dummies, "/after/cost/added_bytes"),
            1.25 * (figure(&padded, "/command_bytes") + figure(&padded, "/padded/added_bytes"))
                - figure(&padded, "/command_bytes"),
        ),
    ];
    assert!(same.iter().all(|(one, other)| (one - other).abs() < 1e-9), "{same:?}");
    assert_eq!(dummies["after"]["with_replies"], dummies["after"]["by_size"]);
    let text = text(folder.path(), &["--delay", "30", "--dummies", "20%"]);
    for words in
        ["With a delay of 30 s, 20 % dummies,", "known to ± 15 s", "seconds of delay, mean", "With replies, the figure"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_target_costs_no_more_than_a_budget_that_reaches_it() {
    let folder = tempfile::tempdir().unwrap();
    small_home(folder.path());
    for home in [&["--inventory", "small.toml"][..], &[]] {
        let best = |goal: [&str; 2]| json(folder.path(), &[home, &goal[..]].concat());
        for budget in ["3%", "10.2%"] {
            let of_budget = &best(["--budget", budget])["padded"];
            let target = format!("{}%", percent(&of_budget["by_size"]["command"]["named"]));
            let of_target = &best(["--target", &target])["padded"];
            let [most, cost] = [of_budget, of_target].map(|padded| padded["added_bytes"].as_f64().unwrap());
            assert!(cost <= most * (1.0 + 1e-9), "{budget} {target}: {cost}, not {most}");
        }
    }
}

#[test]
#[ignore = "second tier: takes a minute"]
fn the_curve_shows_what_padding_hides_from_the_homes_own_detector() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "life.toml", "[habits]\ndays = 60\n");
    let arguments = ["--detect", "life.toml", "--homes", "1"];
    let report = json(folder.path(), &arguments);
    let points = report["points"].as_array().unwrap();
    let found = |point: &Value| point["attacks_found"].as_f64().unwrap();
    assert!(points.iter().all(|point| (0.0..=1.0).contains(&found(point))));
    // Attacks that show by their times remain, however much is hidden.
    assert!(found(points.last().unwrap()) >= 0.25 && found(&points[0]) >= 0.25, "{report}");
    assert_eq!(json(folder.path(), &arguments), report);
    let plain = json(folder.path(), &[]);
    assert!(plain["points"].as_array().unwrap().iter().all(|point| point["attacks_found"].is_null()));
}
