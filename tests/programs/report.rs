//! `sizeleak report` says what the other commands say, of whatever it is given, and text from outside stays text.

use std::fs;
use std::sync::LazyLock;

use roxmltree::{Document, Node};
use serde_json::Value;
use support::home::{Home, assert_fails, run};
use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout, write};

use crate::evaluation::home_with_kinds;

fn text(arguments: &str) -> String {
    String::from_utf8(stdout(&mut sizeleak(arguments))).unwrap()
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&text(arguments)).unwrap()
}

/// The labelled captures of the bundled home.
fn test() -> String {
    format!("{} --labels {} --gateway {GATEWAY}", example("test.pcap"), example("test.csv"))
}

/// The page as XML: without its script and style, and with what HTML alone may leave out.
fn parsed(page: &str) -> String {
    let mut page =
        page.replace("<!doctype html>", "").replace(" hidden>", " hidden=\"\">").replace(" open>", " open=\"\">");
    for name in ["script", "style"] {
        let (from, to) = (page.find(&format!("<{name}>")).unwrap(), page.rfind(&format!("</{name}>")).unwrap());
        page.replace_range(from..to, &format!("<{name}>"));
    }
    let lines =
        page.lines().map(|line| if line.starts_with("<meta") { line.replace('>', "/>") } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

fn of_id<'a>(page: &'a Document<'_>, id: &str) -> Node<'a, 'a> {
    page.descendants().find(|node| node.attribute("id") == Some(id)).unwrap_or_else(|| panic!("no {id}"))
}

fn words(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|text| text.text()).collect::<String>().replace('\u{a0}', " ")
}

/// The exact values of a column of a figure's table.
fn column(page: &Document<'_>, figure: &str, name: &str) -> Vec<f64> {
    let figure = of_id(page, figure);
    let headings = figure.descendants().filter(|node| node.has_tag_name("th")).map(words);
    let at = headings.collect::<Vec<_>>().iter().position(|heading| heading == name).unwrap();
    let rows = figure.descendants().filter(|node| node.has_tag_name("tr")).skip(1);
    let cell = |row: Node<'_, '_>| {
        row.children().filter(Node::is_element).nth(at).unwrap().attribute("data-value").unwrap().parse().ok()
    };
    rows.filter_map(cell).collect()
}

fn numbers(list: &Value, key: &str) -> Vec<f64> {
    list.as_array().unwrap().iter().filter_map(|row| row[key].as_f64()).collect()
}

/// Whether a page has a section.
fn has(page: &Document<'_>, section: &str) -> bool {
    page.descendants().any(|node| node.attribute("id") == Some(section))
}

/// The page of the bundled model.
static PAGE: LazyLock<String> = LazyLock::new(|| text(&format!("report --model {} --quick -q", example("model.toml"))));

/// The page of the bundled home's captures and model.
static HOME_PAGE: LazyLock<String> =
    LazyLock::new(|| text(&format!("report {} --model {} --quick -q", test(), example("model.toml"))));

/// The bundled model for a home of few devices, which has few commands, where figures do not matter.
fn small_model() -> String {
    let model = fs::read_to_string(root().join(example("model.toml"))).unwrap();
    let small = model.replace("count = 12\n", "count = 2\n").replace("count = 4\n", "count = 2\n");
    assert_eq!(small.matches("count = 2\n").count(), 2);
    small
}

#[test]
fn figures_are_those_of_the_commands_they_come_from() {
    let page = parsed(&HOME_PAGE);
    let page = Document::parse(&page).unwrap();
    let model = example("model.toml");
    let evaluation = json(&format!("evaluate {} --model {model} --format=json -q", test()));
    let audit = json(&format!("audit --model {model} --format=json"));
    let pad = json(&format!("pad --model {model} --format=json"));
    let countermeasures = json(&format!("pad --model {model} --countermeasures --format=json"));
    let first = page.descendants().find(|node| node.has_tag_name("h1")).map(words).unwrap();
    assert_eq!(first, evaluation["conclusion"]["sentence"].as_str().unwrap());
    assert_eq!(column(&page, "numbers", "named"), numbers(&audit["by_number"], "named"));
    assert_eq!(
        column(&page, "anonymity-sets", "of commands"),
        numbers(&audit["by_size"]["command"]["sets"], "probability")
    );
    assert_eq!(column(&page, "tries", "by size")[1..], numbers(&audit["by_size"]["command"]["tries"], "named"));
    assert_eq!(column(&page, "collisions", "commands").len(), audit["collisions"].as_array().unwrap().len());
    assert_eq!(column(&page, "policies", "named"), numbers(&pad["points"], "named"));
    assert_eq!(column(&page, "policies", "more"), numbers(&pad["points"], "added_share"));
    let effects = countermeasures["countermeasures"].as_array().unwrap();
    let named: Vec<f64> =
        effects.iter().map(|row| row["effect"]["by_size"]["command"]["named"].as_f64().unwrap()).collect();
    assert_eq!(column(&page, "measures", "command"), named);
    let bins = &evaluation["after_pruning"]["calibration"]["bins"];
    assert_eq!(column(&page, "reliability", "right"), numbers(bins, "right"));
    let named: f64 = column(&page, "expected-sizes", "named").iter().sum();
    assert!((named - audit["by_size"]["command"]["named"].as_f64().unwrap()).abs() < 1e-9, "{named}");
    let shown: f64 = column(&page, "sizes-seen", "commands").iter().sum();
    let note = words(of_id(&page, "sizes-seen"));
    assert!(note.contains(&format!("{} commands of sizes that fewer than five have", 307.0 - shown)), "{note}");
    let tile = words(page.descendants().find(|node| node.attribute("aria-label") == Some("Exact command")).unwrap());
    // What was measured stands beside the verdict, with its number; what only the model says of is computed.
    let right = |score: &str| format!("{:.1} %", 100.0 * evaluation[score]["top_1"].as_f64().unwrap() / 307.0);
    let [by_size, measured] = ["before_pruning", "after_pruning"].map(right);
    assert!(["7.2 %", &by_size, &measured, "measured"].iter().all(|share| tile.contains(share)), "{tile}");
    assert!(first.contains(&measured), "{first}");
    let tile =
        words(page.descendants().find(|node| node.attribute("aria-label") == Some("Number of actions")).unwrap());
    assert!(tile.contains("computed from the model"), "{tile}");
}

#[test]
fn the_page_loads_nothing_and_its_script_is_the_only_one_that_may_run() {
    let page = &*PAGE;
    assert!(page.len() < 250_000, "{} bytes", page.len());
    let head = page.split("<style>").next().unwrap();
    assert!(head.contains("default-src 'none'; script-src 'sha256-"), "{head}");
    let own = page.split("<script>").nth(1).unwrap();
    let markup = page.replace(own.split("</script>").next().unwrap(), "");
    assert!(own.split("</script>").next().unwrap().lines().count() <= 40, "{own}");
    let charts = page.matches("<svg ").count();
    assert!(charts >= 6 && page.matches("role=\"img\"").count() == charts, "{charts} charts");
    let asked = ["src=", "url(", "http:", "https:", "@import"].into_iter().find(|words| markup.contains(words));
    assert_eq!(asked, None, "{markup}");
    assert_eq!(page.matches("<script").count(), 1);
}

#[test]
fn the_same_input_gives_the_same_bytes_wherever_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one.html", "other.html"].map(|name| folder.path().join(name));
    let model = write(folder.path(), "model.toml", small_model());
    for path in [&one, &other] {
        stdout(&mut sizeleak(&format!("report --model {} --quick -q -o {}", model.display(), path.display())));
    }
    assert_eq!(fs::read(one).unwrap(), fs::read(other).unwrap());
}

#[test]
fn names_from_outside_stay_text() {
    const NAME: &str = "</script><img src=x onerror=alert(1)>|`*_";
    let folder = tempfile::tempdir().unwrap();
    let model = write(folder.path(), "model.toml", small_model().replace("\"timer\"", &format!("'{NAME}'")));
    let page = text(&format!("report --model {} --quick -q", model.display()));
    let parsed = parsed(&page);
    let parsed = Document::parse(&parsed).unwrap();
    assert!(words(of_id(&parsed, "actions")).contains(NAME), "the name itself is shown");
    assert!(!page.contains("<img") && page.matches("</script>").count() == 1);
    let markdown = text(&format!("report --model {} --quick --format=markdown -q", model.display()));
    assert!(
        markdown.contains(r"\</script\>\<img src=x onerror=alert(1)\>\|\`\*\_") && !markdown.contains("| </script>"),
        "{markdown}"
    );
}

#[test]
fn markdown_has_the_same_sections_and_figures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.md");
    let written = |model: &str| {
        stdout(&mut sizeleak(&format!("report --model {model} --quick -q -o {}", file.display())));
        fs::read_to_string(&file).unwrap()
    };
    let small = write(folder.path(), "model.toml", small_model()).display().to_string();
    assert_eq!(
        written(&small).replace(" --format=markdown", ""),
        text(&format!("report --model {small} --quick -q --format=markdown")).replace(" --format=markdown", "")
    );
    let markdown = written(&example("model.toml"));
    let headings = |text: &str, before: &str, after: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| Some(line.strip_prefix(before)?.strip_suffix(after)?.to_owned()));
        lines.filter(|heading| heading != "Cheapest fix").collect()
    };
    assert_eq!(headings(&markdown, "## ", "").len(), 8, "{markdown}");
    let of_page = headings(&PAGE, "<h2>", "</h2>");
    assert!(of_page.ends_with(&headings(&markdown, "## ", "")), "{of_page:?}");
    assert!(markdown.contains("| Exact command | 5.9 % | 62.1 % | ≤ 62.5 % |"), "{markdown}");
    // It has tables in place of drawings, of which nothing is said.
    assert!(["A bar", "Each mark", "Each dot", "colour."].iter().all(|words| !markdown.contains(words)), "{markdown}");
}

#[test]
fn each_input_alone_gives_a_page_that_says_what_else_to_give() {
    let (weeks, _) = Home::of_weeks();
    let [answers, profile, deviations] =
        ["attacked.frames", "p.toml", "deviations.frames"].map(|name| weeks.path(name).display().to_string());
    let (model, test) = (example("model.toml"), test());
    let all = ["sizes", "padding", "measured", "calibration", "habits", "deviations", "latency"];
    let page = |given: &str| text(&format!("report {given} --quick -q"));
    for (given, page, sections) in [
        (format!("--model {model}"), PAGE.clone(), &["sizes", "padding"][..]),
        (test.clone(), page(&test), &["measured"]),
        (format!("{test} --model {model}"), HOME_PAGE.clone(), &["sizes", "padding", "measured", "calibration"]),
        (answers.clone(), page(&answers), &["latency"]),
        (profile.clone(), page(&profile), &["habits"]),
        (deviations.clone(), page(&deviations), &["deviations", "latency"]),
        (
            "answers, profile, deviations".to_owned(),
            page(&format!("{answers} {profile} {deviations}")),
            &["habits", "deviations", "latency"],
        ),
    ] {
        let page = parsed(&page);
        let page = Document::parse(&page).unwrap();
        let there: Vec<&str> = all.into_iter().filter(|section| has(&page, section)).collect();
        assert_eq!(there, sections, "{given}");
        let missing = page.descendants().filter(|node| node.attribute("class") == Some("part missing")).map(words);
        let missing: Vec<String> = missing.collect();
        assert!(missing.len() == 1 && missing[0].trim().starts_with("What is left out"), "{given}: {missing:?}");
        assert!(missing[0].contains("sizeleak ") || missing[0].contains("--quick"), "{given}: {missing:?}");
    }
}

#[test]
fn the_page_has_the_warnings_of_a_model_and_what_its_sizes_are_of() {
    let folder = tempfile::tempdir().unwrap();
    let page = |model: &str| {
        let model = write(folder.path(), "m.toml", model).display().to_string();
        text(&format!("report --model {model} --quick -q --format=markdown"))
    };
    let doubtful = small_model().replace("[learned]\n", "[learned]\nwarnings = [\"label `on` more often\"]\n");
    let doubtful = page(&doubtful);
    let warning = "The model was learned with a warning, and so are these figures: label `on` more often.";
    assert!(doubtful.contains(warning), "{doubtful}");
    for place in ["A message without any action has 67 bytes.", "the exact command is named."] {
        let plaintext = format!("{place} Bytes are of plaintext: on the wire, a record has 24 more.");
        assert!(doubtful.contains(&plaintext), "{doubtful}");
    }
    let blocks = small_model().replace("AES_128_GCM_SHA256", "AES_128_CBC_SHA").replace("[24, 24]", "[37, 52]");
    let blocks = page(&blocks);
    assert!(blocks.contains("on the wire, a record has 37 to 52 more."), "{blocks}");
    assert!(
        blocks.contains("What would stop the leak is not known: padding starts from the plaintext sizes"),
        "{blocks}"
    );
    assert!(!page(&small_model()).contains("learned with a warning"));
}

#[test]
fn a_stream_with_deviations_does_not_count_its_answers_twice() {
    let (weeks, _) = Home::of_weeks();
    let commands = |given: &str| {
        let page = parsed(&weeks.text(&format!("report {given} -q")));
        column(&Document::parse(&page).unwrap(), "sizes-seen", "commands").iter().sum::<f64>()
    };
    let both = commands("attacked.frames deviations.frames");
    assert!(both > 100.0 && (both - commands("attacked.frames")).abs() < 1e-9, "{both}");
}

#[test]
fn a_cut_stream_gives_a_page_of_what_is_before_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let frames = stdout(&mut sizeleak("run pipeline.toml --quiet --format frames"));
    let cut = write(folder.path(), "cut.frames", &frames[..frames.len() / 2]);
    let output = run(&mut sizeleak(&format!("report {} -q", cut.display())));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("the report covers what is before the damage"), "{}", stderr(&output));
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("By their own probabilities, the answers name the exact actions of"), "{}", &page[..2000]);
}

#[test]
fn a_model_of_kinds_leaves_out_its_own_figures_and_nothing_else() {
    let home = home_with_kinds(3);
    let [capture, labels, model, answers] =
        ["test.pcap", "test.csv", "kinds.toml", "answers.frames"].map(|name| home.path(name).display().to_string());
    let captures = format!("{capture} --labels {labels} --gateway {GATEWAY}");
    stdout(&mut sizeleak(&format!("run {capture} --model {model} --gateway {GATEWAY} -q -o {answers}")));
    let (weeks, _) = Home::of_weeks();
    let profile = weeks.path("p.toml").display().to_string();
    let devices = format!("--inventory {}", home.path("inventory.toml").display());
    let inventory = format!("{captures} {devices}");
    for (given, sections) in [
        (&captures, &["seen", "measured", "calibration"][..]),
        (&inventory, &["seen", "measured", "calibration"]),
        (&answers, &["seen", "latency"]),
        (&profile, &["habits"]),
    ] {
        let page = parsed(&text(&format!("report {given} --model {model} --quick -q")));
        let page = Document::parse(&page).unwrap();
        assert!(sections.iter().all(|section| has(&page, section)), "{given}");
        assert!(["sizes", "anonymity", "padding", "countermeasures"].iter().all(|section| !has(&page, section)));
        let missing = page.descendants().find(|node| node.attribute("class") == Some("part missing")).map(words);
        let why = "There are no figures, since the model has no sizes of actions.";
        assert!(missing.as_ref().is_some_and(|missing| missing.contains(why)), "{given}: {missing:?}");
    }
    let page = parsed(&text(&format!("report {captures} --model {model} --quick -q")));
    let page = Document::parse(&page).unwrap();
    let evaluation = json(&format!("evaluate {captures} --model {model} --format=json -q"));
    let first = page.descendants().find(|node| node.has_tag_name("h1")).map(words).unwrap();
    assert_eq!(first, evaluation["conclusion"]["sentence"].as_str().unwrap());
    let tile = |title| page.descendants().find(|node| node.attribute("aria-label") == Some(title)).map(words);
    assert!(tile("Exact command").unwrap().contains("measured"));
    let number = tile("Number of actions").unwrap();
    assert!(!number.contains('%'), "all commands have one action, which is nothing to name: {number}");
    // Alone, such a model has nothing to say; nor do its devices make it one of sizes.
    for more in ["", &devices] {
        let fault = "the model has no sizes of actions, only kinds of labelled commands";
        let output = run(&mut sizeleak(&format!("report --model {model} --quick {more}")));
        assert_fails(&output, 1, &[fault]);
        for command in ["audit", "pad"] {
            let output = run(&mut sizeleak(&format!("{command} --model {model} {more}")));
            assert_fails(&output, 1, &[&format!("{model}: {fault}")]);
        }
    }
}
