//! `sizeleak plot` draws every command, and no input breaks the picture.

use std::collections::BTreeSet;
use std::fs;
use std::process::Output;
use std::sync::LazyLock;

use roxmltree::{Document, Node};
use support::home::assert_fails;
use support::programs::{GATEWAY, feed, sizeleak, stderr, stdout};

/// The answers to the bundled capture; frames are of one run.
fn saved(format: &str) -> Vec<u8> {
    static FRAMES: LazyLock<Vec<u8>> =
        LazyLock::new(|| stdout(&mut sizeleak("run pipeline.toml --quiet --format frames")));
    match format {
        "frames" => FRAMES.clone(),
        other => stdout(&mut sizeleak(&format!("run pipeline.toml --quiet --format {other}"))),
    }
}

fn plot(arguments: &str, input: Vec<u8>) -> Output {
    feed(sizeleak(&format!("plot {arguments}")), input)
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn of_class<'a>(picture: &'a Document<'_>, class: &str) -> Vec<Node<'a, 'a>> {
    picture.descendants().filter(|node| node.attribute("class") == Some(class)).collect()
}

pub(crate) fn first_text(node: Node<'_, '_>) -> Option<String> {
    node.descendants().find_map(|inner| inner.text().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned))
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
    let first = "2026-01-06T08:00:07.000000Z, 123 bytes: 1 timer, probability 0.9";
    assert!(commands[0].starts_with(first), "{}", commands[0]);
    assert!(picture.contains("Commands to 192.168.1.20 in 1 flow"), "{}", &picture[..600]);
    let document = Document::parse(&picture).unwrap();
    assert_eq!(
        of_class(&document, "lane").len(),
        commands.iter().filter_map(|text| actions_of(text)).flatten().collect::<BTreeSet<_>>().len()
    );
    assert_eq!(text(&plot("-", saved("ndjson"))), picture, "JSON lines give the same picture");
    let rows = plot("--gateway 192.168.1.20", saved("ndjson --kind identification"));
    assert_eq!(text(&rows), picture, "rows alone name their gateway");
    assert_eq!(text(&plot("", saved("frames"))), picture, "the same input gives the same bytes");
}

/// The actions in a tooltip.
fn actions_of(tooltip: &str) -> Option<Vec<String>> {
    let (_, actions) = tooltip.split_once("bytes: ")?;
    // Lanes are those of the first of two that nothing tells apart.
    let actions = actions.split(", probability").next()?.split(" or ").next()?;
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
    assert_eq!(commands(&text(&one)), ["1970-01-01T00:00:00.000000Z, 99 bytes: 1 on, probability 0.500"]);
    let all = plot("", many.clone().into());
    assert_eq!(commands(&text(&all)).len(), 10_000);
    assert!(stderr(&all).contains("the first 10000 of 10050 commands and deviations are drawn"), "{}", stderr(&all));
    assert!(text(&all).contains("first 10000 of 10050"), "the picture says so");
    let later = text(&plot("--since 1970-01-01T01:00:00Z", many.into()));
    assert_eq!(commands(&later).len(), 10_050 - 3_600, "others are chosen by their times");
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
    assert!(text(&output).contains("time (local) from 2026-01-05T13:30:00.000000+05:30"), "{}", text(&output));
}

#[test]
fn commands_are_filtered_by_time_gateway_and_flow() {
    let hours: String = (0..24).map(|hour| line(hour * 3_600_000_000_000, "")).collect();
    let drawn = |arguments: &str| {
        let output = plot(arguments, hours.clone().into());
        assert!(output.status.success(), "{}", stderr(&output));
        commands(&text(&output)).iter().map(|tooltip| tooltip[11..13].to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(drawn("--since 1970-01-01T20:00:00Z"), "20 21 22 23");
    assert_eq!(drawn("--until 1970-01-01T02:00"), "00 01");
    assert_eq!(drawn("--since 1970-01-01T05:00:00+02:00 --until 1970-01-01T04:30"), "03 04");
    assert_eq!(drawn("--flow F0000000000000001 --until 1970-01-01T01:00"), "00", "as exports name it");
    assert_eq!(drawn("--flow 7,1 --until 1970-01-01T01:00"), "00");
    let mut local = sizeleak("plot --time local --until 1970-01-01T06:00");
    local.env("TZ", "XYZ-5");
    assert_eq!(commands(&text(&feed(local, hours.clone().into()))).len(), 1, "a date follows the selected clock");
    let whole = plot("--gateway 192.168.1.20", saved("frames"));
    assert_eq!(text(&whole), text(&plot("", saved("frames"))), "all commands go to that gateway");
}

#[test]
fn commands_before_a_cut_are_drawn() {
    let whole = saved("frames");
    let no_commands = stdout(&mut sizeleak("run pipeline.toml --quiet --format frames --kind hello,summary"));
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
fn a_picture_goes_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (input, picture) = (folder.path().join("saved.frames"), folder.path().join("timeline.svg"));
    fs::write(&input, saved("frames")).unwrap();
    stdout(sizeleak("plot").arg(&input).arg("-o").arg(&picture));
    assert_eq!(commands(&fs::read_to_string(&picture).unwrap()).len(), 307);
}

/// A JSON line like that of `sizeleak detect`.
fn deviation(time_ns: i64, gateway: &str, what: &str) -> String {
    format!(
        "{{\"deviation\":{{\"time_ns\":{time_ns},\"gateway\":\"{gateway}\",\"what\":\"{what}\",\"p_value\":0.0125,\
         \"expected\":\"one\",\"seen\":\"ni<e\",\"commands\":[{{\"flow\":\"F0000000000000001\",\"time_ns\":{time_ns}}}]}}}}\n"
    )
}

#[test]
fn deviations_have_lanes_by_their_kind_with_and_without_commands() {
    let hour = 3_600_000_000_000;
    let lines = deviation(hour, "192.0.2.9", "silence") + &deviation(2 * hour, "192.0.2.9", "burst");
    let picture = |arguments: &str, input: &str| {
        let output = plot(arguments, input.into());
        assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
        text(&output)
    };
    let texts = |picture: &str, class: &str| -> Vec<String> {
        let document = Document::parse(picture).unwrap();
        of_class(&document, class).into_iter().filter_map(first_text).collect()
    };
    let alone = picture("", &lines);
    let tooltip = "1970-01-01T01:00:00.000000Z at 192.0.2.9: silence (p 0.013): ni<e; usual: one";
    assert_eq!(texts(&alone, "deviation")[0], tooltip);
    assert_eq!(texts(&alone, "lane"), ["burst", "silence"]);
    assert_eq!((texts(&alone, "legend"), texts(&alone, "sizes")), (vec!["deviation".to_owned()], Vec::new()));
    assert!(alone.contains("Deviations at 192.0.2.9") && alone.contains("commands and deviations drawn: 2"), "{alone}");
    let both = picture("", &(line(0, &best("\"on\":1")) + &lines));
    assert_eq!(texts(&both, "lane"), ["on", "burst", "silence"]);
    assert_eq!(texts(&both, "group"), ["unknown gateway and an unknown service", "deviations"]);
    assert_eq!(texts(&picture("", &line(0, "")), "deviation"), Vec::<String>::new());
    assert_eq!(texts(&picture("--since 1970-01-01T01:30 --flow 1", &lines), "lane"), ["burst"]);
    let none = plot("--gateway 192.0.2.10", lines.into());
    let failed = none.status.code() == Some(1) && none.stdout.is_empty();
    assert!(failed && stderr(&none).contains("none of 2 commands and deviations"), "{}", stderr(&none));
}

/// The cells of a picture of habits: their tooltips with their colours.
fn hours(picture: &str) -> Vec<(String, String)> {
    let document = Document::parse(picture).unwrap();
    let hour = |node: Node<'_, '_>| (first_text(node).unwrap(), node.attribute("fill").unwrap().to_owned());
    of_class(&document, "hour").into_iter().map(hour).collect()
}

#[test]
fn habits_are_the_mean_of_the_days_of_a_profile_by_the_clock_of_its_home() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    // Monday, the fifth of January 2026, at noon in UTC.
    let (noon, hour) = (1_767_614_400_000_000_000_i64, 3_600_000_000_000_i64);
    let best = |name: &str| format!("{{\"actions\":{{\"{name}\":1}},\"epsilon\":0,\"probability\":1}}");
    let mut lines = String::new();
    for day in 0..16 {
        let at = noon + day * 24 * hour;
        lines.push_str(&in_flow(1, "192.0.2.9", at, &best("on")));
        // Of the fourteen days from Tuesday on, those with an odd number have a second command; two Sundays have it.
        if day % 2 == 1 {
            lines.push_str(&in_flow(1, "192.0.2.9", at + hour / 2, &best("on")));
        }
        if day % 7 == 6 {
            lines.push_str(&in_flow(1, "192.0.2.9", at + 11 * hour, &best("off")));
        }
    }
    fs::write(path("answers.ndjson"), lines).unwrap();
    stdout(&mut sizeleak(&format!(
        "profile {} --time-zone Etc/GMT-2 -q -o {}",
        path("answers.ndjson"),
        path("p.toml")
    )));
    let profile = fs::read(path("p.toml")).unwrap();
    let output = plot("", profile.clone());
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    let picture = text(&output);
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let mut expected: Vec<String> = days.iter().map(|day| format!("{day} 14:00 to 15:00: 1.50 an hour")).collect();
    // The other action: after midnight by the clock of the home.
    expected.push("Mon 01:00 to 02:00: 1.00 an hour".into());
    let drawn = hours(&picture);
    assert_eq!(drawn.iter().map(|(tooltip, _)| tooltip.clone()).collect::<Vec<_>>(), expected);
    let colours = drawn.iter().map(|(_, colour)| colour.as_str()).collect::<BTreeSet<_>>();
    assert_eq!(colours.len(), 1, "both are in the step from 1 on");
    for words in [
        "14 whole days, 26 commands; clock: Etc/GMT-2",
        "Habits of the home behind 192.0.2.9",
        "10.5 a week",
        "1 and more",
        "14:00  14 of 14 days",
    ] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    assert_eq!(text(&plot("--kind profile --gateway 192.0.2.9", profile.clone())), picture);
    let sized = text(&plot("--size 400x1000 --title a&b", profile.clone()));
    assert!(
        sized.contains("width=\"400\"") && sized.contains("height=\"1000\"") && sized.contains("a&amp;b"),
        "{sized}"
    );
    let profile = String::from_utf8(profile).unwrap();
    let of_no_day =
        "[[home]]\ngateway = \"192.0.2.8\"\nuses = []\ndiary = [[\"2026-01-05T07:00:00Z\", [[1.0, { on = 1 }]]]]\n";
    let two = profile.clone() + of_no_day;
    assert_fails(&plot("--size 640x200", profile.clone().into()), 2, &["2 actions need a height of"]);
    for (arguments, input, words) in [
        ("--section 1", &profile, "`--section` is about a figure of sizes, and stdin is drawn as a profile"),
        ("--gateway 192.0.2.9 --kind latency", &line(7, ""), "`--gateway` is about a timeline or a profile"),
    ] {
        assert_fails(&plot(arguments, input.clone().into()), 2, &[words]);
    }
    assert_eq!(hours(&text(&plot("--gateway 192.0.2.9", two.into()))).len(), 8);
}

/// The numbers of an attribute of the parts of a picture.
fn numbers(nodes: &[Node<'_, '_>], attribute: &str) -> Vec<f64> {
    nodes.iter().filter_map(|node| node.attribute(attribute)?.parse().ok()).collect()
}

/// A JSON line of a command in a flow of its own gateway.
fn in_flow(flow: u64, gateway: &str, time_ns: i64, candidates: &str) -> String {
    let id = format!("F{flow:016x}");
    format!(
        "{{\"flow\":{{\"flow\":\"{id}\",\"gateway\":\"{gateway}\",\"service\":\"203.0.113.1:443\",\"transport\":\"tcp\"}}}}\n{}",
        line(time_ns, candidates).replace("\"flow\":1,", &format!("\"flow\":\"{id}\","))
    )
}

fn best(actions: &str) -> String {
    format!("{{\"actions\":{{{actions}}},\"epsilon\":0,\"probability\":0.5}}")
}

#[test]
fn lanes_have_one_scale_and_an_order_that_does_not_depend_on_flows() {
    let flows = [(9, "192.0.2.9", "\"on\":1"), (1, "192.0.2.10", "\"off\":1,\"on\":4"), (5, "192.0.2.9", "\"off\":2")];
    let input: String =
        flows.iter().map(|(flow, gateway, actions)| in_flow(*flow, gateway, 7, &best(actions))).collect();
    let picture = text(&plot("", input.into()));
    let document = Document::parse(&picture).unwrap();
    let of = |class: &str| -> Vec<String> { of_class(&document, class).into_iter().filter_map(first_text).collect() };
    assert_eq!(of("group"), ["192.0.2.9 and 203.0.113.1:443", "192.0.2.10 and 203.0.113.1:443"], "by address");
    assert_eq!(of("lane"), ["on", "off", "on", "off"]);
    let heights = of_class(&document, "command").into_iter().map(|command| {
        numbers(&command.children().filter(|child| child.has_tag_name("rect")).collect::<Vec<_>>(), "height")
    });
    let heights: Vec<f64> = heights.flatten().collect();
    assert_eq!(heights.iter().map(|height| height / heights[2]).collect::<Vec<_>>(), [0.25, 0.25, 1.0, 0.5]);
}

#[test]
fn legend_and_size_axis_hold_what_the_picture_has() {
    let picture = text(&plot("", (line(7, &best("\"on\":1")) + &line(8, &best("\"on\":2"))).into()));
    let document = Document::parse(&picture).unwrap();
    let texts = |class: &str| -> Vec<String> {
        let nodes = of_class(&document, class)
            .into_iter()
            .flat_map(|node| node.descendants().filter(Node::is_text).collect::<Vec<_>>());
        nodes.map(|node| node.text().unwrap().trim().to_owned()).filter(|text| !text.is_empty()).collect()
    };
    let bands = ["below 0.2", "0.2 to 0.4", "0.4 to 0.6", "0.6 to 0.8", "0.8 and more"];
    assert_eq!(
        texts("legend"),
        bands.map(|band| format!("probability {band}")),
        "all bands, and nothing that is not used"
    );
    assert_eq!(texts("sizes"), ["size in bytes", "99", "100"]);
}

#[test]
fn picture_has_the_size_and_title_that_are_asked_for() {
    let output = plot("--size 640x480 --title a&b", line(7, &best("\"on\":1")).into());
    let picture = text(&output);
    let document = Document::parse(&picture).unwrap();
    let root = document.root_element();
    assert_eq!((root.attribute("width"), root.attribute("height")), (Some("640"), Some("480")));
    assert!(document.descendants().any(|node| node.text().is_some_and(|text| text.trim() == "a&b")), "{picture}");
    let actions: String = (0..30).map(|at| line(at, &best(&format!("\"action {at}\":1")))).collect();
    let small = plot("--size 640x300", actions.into());
    assert!(
        small.status.code() == Some(2) && stderr(&small).contains("30 lanes need a height of"),
        "{}",
        stderr(&small)
    );
}

#[test]
fn labels_are_drawn_over_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("labels.csv");
    let input =
        [line(10_000_000_000, &best("\"on\":1")), line(20_000_000_000, &best("\"on\":2")), line(30_000_000_000, "")];
    fs::write(&labels, "time,on,off\n10.5,1,0\n20.5,0,3\n25.5,1,0\n99,1,0\n").unwrap();
    let output = plot(&format!("--labels {}", labels.display()), input.concat().into());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 label is outside"), "{}", stderr(&output));
    let picture = text(&output);
    let tooltips = commands(&picture);
    let verdicts: Vec<&str> = tooltips.iter().map(|tooltip| tooltip.rsplit(", ").next().unwrap()).collect();
    assert_eq!(verdicts, ["right", "wrong", "without a label"]);
    let document = Document::parse(&picture).unwrap();
    let drawn = of_class(&document, "label");
    assert_eq!(drawn.len(), 3);
    assert!(drawn[2].attribute("stroke-dasharray").is_some(), "of no command");
    assert!(picture.contains("labels: 3; the first candidate is right for 1 of 2 labelled commands"), "{picture}");
    let truth = plot("--labels examples/home/test.csv", saved("frames"));
    let traffic = "examples/home/test.pcap --labels examples/home/test.csv --model examples/home/model.toml";
    let evaluation = stdout(&mut sizeleak(&format!("evaluate {traffic} --gateway {GATEWAY} --format=json -q")));
    let evaluation: serde_json::Value = serde_json::from_slice(&evaluation).unwrap();
    let right = format!("is right for {} of 307 labelled commands", evaluation["after_pruning"]["top_1"]);
    assert!(text(&truth).contains(&right), "as `evaluate` counts: {right}");
}
