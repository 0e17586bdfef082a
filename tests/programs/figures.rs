//! `sizeleak plot` draws what other commands write: every figure holds the numbers of its report, as SVG, PNG and PDF.

use std::fs;
use std::process::Output;

use roxmltree::Document;
use serde_json::{Value, json};
use support::programs::{STAGES, example, feed, sizeleak, stderr, stdout, write};

use super::plot::{first_text, of_class};

const TRAFFIC: &str = "--labels examples/home/test.csv --gateway 192.168.1.20 -q";

fn plot(arguments: &str, input: impl Into<Vec<u8>>) -> Output {
    feed(sizeleak(&format!("plot {arguments}")), input.into())
}

/// The picture; nothing is said on stderr.
fn picture(arguments: &str, input: impl Into<Vec<u8>>) -> String {
    let output = plot(arguments, input);
    assert!(output.status.success() && output.stderr.is_empty(), "{arguments}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The texts of a class.
fn texts(picture: &str, class: &str) -> Vec<String> {
    let document = Document::parse(picture).unwrap();
    of_class(&document, class).into_iter().filter_map(first_text).collect()
}

fn count(picture: &str, class: &str) -> usize {
    of_class(&Document::parse(picture).unwrap(), class).len()
}

/// The names in the legend.
fn legend(picture: &str) -> Vec<String> {
    let document = Document::parse(picture).unwrap();
    let texts = of_class(&document, "legend")[0].children().filter(|node| node.has_tag_name("text"));
    texts.filter_map(first_text).collect()
}

fn evaluation() -> Vec<u8> {
    stdout(&mut sizeleak(&format!(
        "evaluate examples/home/test.pcap --model examples/home/model.toml {TRAFFIC} --format=json"
    )))
}

/// A report with values of its own, where those of the bundled home are not enough.
fn confusion(names: &[&str], taken: &[&[f64]]) -> Vec<u8> {
    let score = json!({"commands": 9, "calibration": {"expected_error": null, "by_chance": null, "bins": []}});
    let actions: Vec<Value> = names.iter().map(|name| json!({"action": name})).collect();
    let confusion = json!({"taken": taken, "missed": vec![0.0; names.len()], "invented": vec![0.0; names.len()]});
    let report =
        json!({"schema": 1, "commands": 9, "after_pruning": score, "actions": actions, "confusion": confusion});
    serde_json::to_vec(&report).unwrap()
}

#[test]
fn an_evaluation_gives_calibration_and_confusion() {
    let report = evaluation();
    let calibration = picture("", report.clone());
    let json: Value = serde_json::from_slice(&report).unwrap();
    let bins = json["after_pruning"]["calibration"]["bins"].as_array().unwrap();
    let answered = bins.iter().filter(|bin| bin["answers"].as_u64() > Some(0)).count();
    assert_eq!(count(&calibration, "bin"), answered);
    assert_eq!(
        texts(&calibration, "axis"),
        ["stated probability of the first candidate (%)", "first candidate right (%)"]
    );
    assert_eq!(legend(&calibration).len(), 3);
    assert!(calibration.contains("307 commands"), "{calibration}");
    let compact = picture("--kind calibration", serde_json::to_vec(&json).unwrap());
    assert_eq!(compact, calibration, "JSON in one line is no line of frames");

    let confused = picture("--kind confusion", report);
    let taken = json["confusion"]["taken"].as_array().unwrap();
    let cells = taken.iter().flat_map(|row| row.as_array().unwrap()).filter(|count| count.as_f64() > Some(0.0)).count();
    assert_eq!(count(&confused, "cell"), cells);
    assert_eq!(texts(&confused, "row")[0], "on (278)");
    assert_eq!(texts(&confused, "column"), ["on", "off", "toggle", "timer", "dim", "white", "colour", "missed"]);
    let of_on = json["confusion"]["taken"][0][0].as_f64().unwrap();
    assert_eq!(texts(&confused, "cell")[0], format!("{:.2} %", 100.0 * of_on / 278.0), "{of_on} of 278");
    assert_eq!(legend(&confused).len(), 6, "all bands");
}

#[test]
fn learning_curves_and_padding_have_a_mark_for_each_point() {
    let folder = tempfile::tempdir().unwrap();
    let evaluate = "evaluate examples/home/learn.pcap --labels examples/home/learn.csv --gateway 192.168.1.20 -q \
                    --inventory examples/home/inventory.toml --curve=20,60 --format=json";
    let report = stdout(&mut sizeleak(evaluate));
    let curve = picture("", report);
    assert_eq!(count(&curve, "series"), 3);
    assert_eq!(texts(&curve, "axis"), ["labelled commands to learn from", "commands (%)"]);
    assert_eq!(legend(&curve), ["truth among the candidates", "among the first five", "the first candidate"]);

    let home = "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\", \"off\", \"toggle\", \"timer\"]\n";
    let inventory = write(folder.path(), "small.toml", home);
    let pad = "pad --model examples/home/model.toml --format=json -q --inventory";
    let report = stdout(sizeleak(pad).arg(inventory));
    let padding = picture("", report.clone());
    let json: Value = serde_json::from_slice(&report).unwrap();
    let points = json["points"].as_array().unwrap();
    let cost = points.iter().filter(|point| point["added_share"].as_f64() > Some(0.0)).count();
    assert_eq!(count(&padding, "policy"), cost);
    let names = legend(&padding);
    for name in ["best table", "multiple", "padme", "powers-of-two", "tls13"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with("no padding (")), "{names:?}");
    assert_eq!(texts(&padding, "axis"), ["bytes added to commands (%)", "command named (%)"]);
}

#[test]
fn a_model_gives_the_sizes_of_its_commands_and_how_many_share_each() {
    let model = example("model.toml");
    let sizes = picture(&model, "");
    let mut names = texts(&sizes, "action");
    assert_eq!(names, ["on", "off", "toggle", "timer", "white", "dim", "colour"], "by their size");
    names.sort_unstable();
    let tooltips = texts(&sizes, "size");
    assert_eq!(tooltips[..2], ["95 bytes: 1 command", "96 bytes: 1 command"], "67 bytes of overhead, and 28 or 29");
    assert_eq!(texts(&sizes, "row"), ["1 action", "2 actions", "3 actions", "4 actions"]);
    assert_eq!(legend(&sizes).len(), 5, "all bands");
    // As `audit` counts them: commands of two actions collide in sizes 63, 64, 68 and so on, without the overhead.
    let audit = stdout(&mut sizeleak(&format!("audit --model {model} --format=json -q")));
    let audit: Value = serde_json::from_slice(&audit).unwrap();
    for collision in audit["collisions"].as_array().unwrap() {
        let (bytes, least) =
            (67 + collision["bytes"].as_u64().unwrap(), collision["commands"].as_array().unwrap().len());
        let tooltip = tooltips.iter().find(|tooltip| tooltip.starts_with(&format!("{bytes} bytes: "))).unwrap();
        let commands: usize = tooltip.split(' ').nth(2).unwrap().parse().unwrap();
        assert!(commands >= least, "{tooltip}: {collision}");
    }
}

#[test]
fn frames_give_the_latency_of_each_stage() {
    let frames = stdout(&mut sizeleak("run pipeline.toml --quiet --format frames"));
    let latency = picture("--kind latency", frames.clone());
    assert_eq!(texts(&latency, "row"), STAGES);
    assert_eq!(texts(&latency, "axis"), ["time for a frame (µs)"]);
    assert_eq!(picture("--kind latency", frames), latency, "the same input gives the same bytes");
}

#[test]
fn parquet_gives_the_timeline_of_its_frames() {
    let folder = tempfile::tempdir().unwrap();
    let answers = folder.path().join("answers.parquet");
    stdout(sizeleak("run pipeline.toml --quiet -o").arg(&answers));
    let of_parquet = String::from_utf8(stdout(sizeleak("plot").arg(&answers))).unwrap();
    let of_frames = picture("", stdout(&mut sizeleak("run pipeline.toml --quiet --format frames")));
    assert!(count(&of_parquet, "command") == 307 && of_parquet == of_frames);
}

#[test]
fn png_has_the_size_that_is_asked_for_and_pdf_one_page() {
    let folder = tempfile::tempdir().unwrap();
    let report = write(folder.path(), "report.json", confusion(&["on", "off"], &[&[2.0, 1.0], &[0.0, 4.0]]));
    let drawn = |name: &str, arguments: &str| {
        let file = folder.path().join(name);
        stdout(sizeleak(&format!("plot {arguments} --kind confusion")).arg(&report).arg("-o").arg(&file));
        fs::read(file).unwrap()
    };
    let size = |png: &[u8]| [16, 20].map(|at| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()));
    let png = drawn("x.png", "--size 801x603");
    assert_eq!((&png[1..4], size(&png)), (&b"PNG"[..], [801, 603]));
    assert_eq!(size(&drawn("y.png", "--size 801x603 --font-size 23")), [801, 603], "whatever the font");
    assert!(drawn("z.PNG", "--size 801x603") == png, "the same input gives the same bytes");
    assert!(drawn("t.png", "--size 801x603 --title other") != png, "texts are drawn");
    let pdf = drawn("x.pdf", "");
    assert!(pdf.starts_with(b"%PDF") && drawn("y.pdf", "") == pdf);
    let has = |bytes: &[u8]| pdf.windows(bytes.len()).filter(|window| *window == bytes).count();
    assert_eq!((has(b"/Count 1"), has(b"/MediaBox[0 0 252")), (1, 1), "a column of a paper is 3.5 inches wide");
    assert!(has(b"NotoSans") > 0, "its text has a font, and can be selected");
}

#[test]
fn size_font_and_title_are_as_asked_for() {
    let report = || confusion(&["on", "off"], &[&[2.0, 1.0], &[0.0, 4.0]]);
    let viewed = |arguments: &str| {
        let picture = picture(&format!("--kind confusion {arguments}"), report());
        let root = Document::parse(&picture).unwrap();
        let root = root.root_element();
        ["width", "viewBox"].map(|name| root.attribute(name).unwrap().to_owned())
    };
    let [width, view] = viewed("--size 300x300 --font-size 12");
    assert_eq!((width.as_str(), view.as_str()), ("300", "0 0 300 300"));
    let [width, twice] = viewed("--size 600x600 --font-size 24");
    assert_eq!((width.as_str(), twice), ("600", view), "a greater font enlarges all");
    let plain = picture("--title= --kind confusion", report());
    let titled = picture("--title Mine --kind confusion", report());
    assert!(titled.contains(">\nMine\n<") && !plain.contains(">\nMine\n<"));
    assert!(titled.matches("labelled commands").count() == 2 && plain.matches("labelled commands").count() == 1);
    for arguments in ["--size 200 --font-size 60", "--size 640x150", "--size 200x150 --font-size 200"] {
        let small = plot(&format!("--kind confusion {arguments}"), report());
        assert!(small.status.code() == Some(2) && stderr(&small).contains("needs a "), "{}", stderr(&small));
    }
}

#[test]
fn hostile_names_stay_text_and_many_actions_are_counted() {
    let name = "</text><script>alert(1)</script>\u{0}&";
    let hostile = picture("--kind confusion", confusion(&[name, "off"], &[&[2.0, 1.0], &[1e6, 4.0]]));
    assert!(!hostile.contains("<script"), "{hostile}");
    assert_eq!(texts(&hostile, "column")[1..], ["off", "missed"]);
    let names: Vec<String> = (0..30).map(|at| format!("action {at}")).collect();
    let rows: Vec<Vec<f64>> = (0..30_u32).map(|at| (0..30).map(|_| f64::from(at)).collect()).collect();
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let many = picture("--kind confusion", confusion(&names.iter().map(String::as_str).collect::<Vec<_>>(), &rows));
    assert!(many.contains("6 rarer actions are left out"), "{many}");
    assert_eq!(texts(&many, "column")[0], "action 6", "the most frequent ones");
}

#[test]
fn flows_of_a_section_of_the_model_share_their_lanes() {
    let folder = tempfile::tempdir().unwrap();
    let model = fs::read_to_string("examples/home/model.toml").unwrap();
    let (before, scope) = model.split_once("[scope]\n").unwrap();
    let after = scope.lines().skip_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let services = "services = [\"203.0.113.1:443\", \"203.0.113.2:8883\"]";
    let model = write(folder.path(), "model.toml", format!("{before}[scope]\n{services}\n{after}"));
    let answer = |flow: u64, service: &str| {
        format!(
            "{{\"identification\":{{\"time_ns\":{flow},\"end_ns\":{flow},\"flow\":{flow},\"gateway\":\"192.0.2.9\",\
             \"service\":\"{service}\",\"size\":99,\"plaintext\":null,\"records\":1,\"replies\":1,\"reply_bytes\":9,\
             \"candidates\":[],\"candidate_count\":0,\"listed\":0,\"min_actions\":null,\"max_actions\":null}}}}\n"
        )
    };
    let input = answer(1, "203.0.113.1:443") + &answer(2, "203.0.113.2:8883") + &answer(3, "203.0.113.3:99");
    let groups = texts(&picture("", input.clone()), "group");
    let ends =
        ["203.0.113.3:99", "203.0.113.1:443", "203.0.113.2:8883"].map(|service| format!("192.0.2.9 and {service}"));
    assert_eq!(groups, ends, "without a model, by port");
    let groups = texts(&picture(&format!("--model {}", model.display()), input), "group");
    assert_eq!(groups, ["any gateway, 203.0.113.1:443, 203.0.113.2:8883", "192.0.2.9 and 203.0.113.3:99"]);
}
