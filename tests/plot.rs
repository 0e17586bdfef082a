//! `sizeleak plot` draws every command, and no input breaks the picture.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod programs;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Output, Stdio};

use programs::{feed, sizeleak, stderr, stdout};
use roxmltree::{Document, Node};

fn saved(format: &str) -> Vec<u8> {
    stdout(&mut sizeleak(&format!("run pipeline.toml --quiet --format {format}")))
}

fn plot(arguments: &str, input: Vec<u8>) -> Output {
    feed(sizeleak(&format!("plot {arguments}")), input)
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn of_class<'a>(picture: &'a Document<'_>, class: &str) -> Vec<Node<'a, 'a>> {
    picture.descendants().filter(|node| node.attribute("class") == Some(class)).collect()
}

/// The tooltips of the commands.
fn commands(picture: &str) -> Vec<String> {
    let picture = Document::parse(picture).unwrap();
    let tooltip = |node: Node<'_, '_>| {
        let title = node.children().find(|child| child.has_tag_name("title")).unwrap();
        assert!(node.children().any(|child| child.has_tag_name("rect")), "a command without a bar");
        title.text().unwrap().trim().to_owned()
    };
    of_class(&picture, "command").into_iter().map(tooltip).collect()
}

/// A JSON line like the pruner's.
fn line(time_ns: i64, candidates: &str) -> String {
    format!(
        "{{\"identification\":{{\"time_ns\":{time_ns},\"end_ns\":{time_ns},\"flow\":1,\"size\":99,\"plaintext\":null,\
         \"records\":1,\"replies\":1,\"reply_bytes\":9,\"candidates\":[{candidates}],\"candidate_count\":1,\
         \"listed\":1,\"min_actions\":null,\"max_actions\":null}}}}\n"
    )
}

#[test]
fn frames_and_json_lines_give_the_same_picture_of_every_command() {
    let frames = plot("", saved("frames"));
    assert!(frames.status.success() && frames.stderr.is_empty(), "{}", stderr(&frames));
    let picture = text(&frames);
    let commands = commands(&picture);
    assert_eq!(commands.len(), 307);
    let first = "2026-01-06 08:00:07.000000, 123 bytes: 1 timer, probability 0.9";
    assert!(commands[0].starts_with(first), "{}", commands[0]);
    assert!(picture.contains("Commands to 192.168.1.20 in 1 flow"), "{}", &picture[..600]);
    let document = Document::parse(&picture).unwrap();
    assert_eq!(
        of_class(&document, "lane").len(),
        commands.iter().filter_map(|text| actions_of(text)).flatten().collect::<BTreeSet<_>>().len()
    );
    assert_eq!(text(&plot("-", saved("ndjson"))), picture, "JSON lines give the same picture");
    assert_eq!(text(&plot("", saved("frames"))), picture, "the same input gives the same bytes");
}

/// The actions in a tooltip.
fn actions_of(tooltip: &str) -> Option<Vec<String>> {
    let (_, actions) = tooltip.split_once("bytes: ")?;
    let actions = actions.split(", probability").next()?;
    Some(
        actions
            .split(", ")
            .map(|action| action.trim_start_matches(|it: char| it.is_ascii_digit() || it == ' ').to_owned())
            .collect(),
    )
}

#[test]
fn number_of_drawn_commands_is_limited() {
    let best = |count: usize| format!("{{\"actions\":{{\"on\":{count}}},\"epsilon\":0,\"probability\":0.5}}");
    let many: String = (0..10_050).map(|at| line(at * 1_000_000_000, &best(1 + at as usize % 3))).collect();
    let one = plot("", line(7, &best(1)).into());
    assert_eq!(commands(&text(&one)), ["1970-01-01 00:00:00.000000, 99 bytes: 1 on, probability 0.500"]);
    let all = plot("", many.clone().into());
    assert_eq!(commands(&text(&all)).len(), 10_000);
    assert!(stderr(&all).contains("the first 10000 of 10050 commands are drawn"), "{}", stderr(&all));
    assert!(text(&all).contains("first 10000 of 10050"), "the picture says so");
    assert_eq!(commands(&text(&plot("--limit 20000", many.into()))).len(), 10_050);
}

#[test]
fn hostile_names_and_numbers_do_not_break_the_picture() {
    let name = "</g>&amp;\\u0000\\\"'<script>alert(1)</script>";
    let odd = format!("{{\"actions\":{{\"{name}\":4294967295}},\"epsilon\":0,\"probability\":1e308}}");
    let lines =
        [line(i64::MIN, &odd), line(i64::MAX, ""), line(0, "{\"actions\":{},\"epsilon\":0,\"probability\":-3}")];
    let output = plot("", lines.concat().into());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(commands(&text(&output)).len(), 3);
    assert!(!text(&output).contains("<script"), "{}", text(&output));
    for lane in ["unexplained", "no action"] {
        assert!(text(&output).contains(lane), "{lane}");
    }
}

#[test]
fn times_follow_the_selected_clock() {
    let mut command = sizeleak("plot --time local");
    command.env("TZ", "XYZ-5:30");
    let output = feed(command, line(1_767_600_000_000_000_000, "").into());
    assert!(text(&output).contains("time (local) from 2026-01-05 13:30:00.000000+05:30"), "{}", text(&output));
}

#[test]
fn commands_are_filtered_by_time_gateway_and_flow() {
    let hours: String = (0..24).map(|hour| line(hour * 3_600_000_000_000, "")).collect();
    let drawn = |arguments: &str| {
        let output = plot(arguments, hours.clone().into());
        assert!(output.status.success(), "{}", stderr(&output));
        commands(&text(&output)).iter().map(|tooltip| tooltip[11..13].to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(drawn("--from 1970-01-01T20:00:00Z"), "20 21 22 23");
    assert_eq!(drawn("--until 1970-01-01T02:00"), "00 01");
    assert_eq!(drawn("--from 1970-01-01T05:00:00+02:00 --until 1970-01-01T04:30"), "03 04");
    assert_eq!((drawn("--flow 7,1 --until 1970-01-01T01:00").as_str(), drawn("--flow 7").as_str()), ("00", ""));
    let mut local = sizeleak("plot --time local --until 1970-01-01T06:00");
    local.env("TZ", "XYZ-5");
    assert_eq!(commands(&text(&feed(local, hours.clone().into()))).len(), 1, "a date follows the selected clock");
    let none = plot("--gateway 10.0.0.1", hours.clone().into());
    assert!(none.status.success() && stderr(&none).contains("none of 24 commands"), "{}", stderr(&none));
    let frames = saved("frames");
    let whole = plot("--gateway 192.168.1.20", frames.clone());
    assert_eq!(text(&whole), text(&plot("", frames.clone())), "all commands go to that gateway");
    assert!(commands(&text(&plot("--gateway 192.168.1.21", frames))).is_empty());
    for wrong in ["--from tomorrow", "--from 1970-01-02 --until 1970-01-01", "--until 9999-01-01", "--gateway hub"] {
        assert_eq!(plot(wrong, Vec::new()).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn commands_before_a_cut_are_drawn() {
    let whole = saved("frames");
    let no_commands = stdout(&mut sizeleak("run pipeline.toml --quiet --format frames --kind hello summary"));
    let output = plot("", no_commands);
    assert!(output.status.success() && commands(&text(&output)).is_empty(), "{}", stderr(&output));
    assert!(stderr(&output).contains("no identification"), "{}", stderr(&output));
    let cut = plot("", whole[..whole.len() / 2].to_vec());
    let drawn = commands(&text(&cut)).len();
    assert!(cut.status.code() == Some(3) && (50..307).contains(&drawn), "{drawn}: {}", stderr(&cut));
    let empty = plot("", Vec::new());
    assert!(empty.status.code() == Some(3) && commands(&text(&empty)).is_empty(), "{}", stderr(&empty));
    let half = plot("", (line(1, "") + "{\"identification\":{\"ti").into());
    assert!(half.status.code() == Some(3) && commands(&text(&half)).len() == 1, "{}", stderr(&half));
    let wrong = plot("", (line(1, "") + "{\"identification\":7}\n").into());
    assert!(wrong.status.code() == Some(1) && commands(&text(&wrong)).len() == 1, "{}", stderr(&wrong));
    assert!(stderr(&wrong).contains("line 2: "), "{}", stderr(&wrong));
}

#[test]
fn picture_goes_to_a_file_or_a_pipe_that_may_close() {
    let folder = tempfile::tempdir().unwrap();
    let (input, picture) = (folder.path().join("saved.frames"), folder.path().join("timeline.svg"));
    fs::write(&input, saved("frames")).unwrap();
    stdout(sizeleak("plot").arg(&input).arg("-o").arg(&picture));
    assert_eq!(commands(&fs::read_to_string(&picture).unwrap()).len(), 307);
    let missing = sizeleak("plot no/such.frames").output().unwrap();
    assert!(missing.status.code() == Some(1) && stderr(&missing).contains("no/such.frames"), "{}", stderr(&missing));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = sizeleak("plot").arg(&input).stdout(Stdio::from(writer)).output().unwrap();
    assert!(closed.status.success() && closed.stderr.is_empty(), "{}", stderr(&closed));
}
