//! `sizeleak report` says what the other commands say, of whatever it is given, and text from outside stays text.

use std::fs;
use std::sync::LazyLock;

use roxmltree::{Document, Node};
use serde_json::Value;
use support::home::Home;
use support::programs::{GATEWAY, example, root, sizeleak, stdout, write};

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
fn a_stream_with_deviations_does_not_count_its_answers_twice() {
    let (weeks, _) = Home::of_weeks();
    let commands = |given: &str| {
        let page = parsed(&weeks.text(&format!("report {given} -q")));
        column(&Document::parse(&page).unwrap(), "sizes-seen", "commands").iter().sum::<f64>()
    };
    let both = commands("attacked.frames deviations.frames");
    assert!(both > 100.0 && (both - commands("attacked.frames")).abs() < 1e-9, "{both}");
    Document::parse(&parsed(&weeks.text("report p.toml -q"))).expect("the page of a profile is well formed");
}
