//! The help of every command fits a screen, and its long form has everything, under headings.

use std::collections::BTreeSet;
use std::process::Command;

use support::programs::{stdout, with};

/// A screen, in lines.
const SCREEN: usize = 40;

const STAGES: [&str; 7] =
    ["capture", "flow-filter", "record-sizer", "command-segmenter", "epsilon-corrector", "decomposer", "pruner"];

/// What a program prints on a terminal of this width.
fn help(program: &str, arguments: &str, columns: u16) -> String {
    let mut command: Command = with(program, arguments);
    String::from_utf8(stdout(command.env("COLUMNS", columns.to_string()))).unwrap()
}

/// The names of the subcommands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

/// All programs and subcommands: a program, and the words behind it.
fn commands() -> Vec<(&'static str, String)> {
    let mut commands: Vec<_> = STAGES.iter().map(|stage| (*stage, String::new())).collect();
    commands.push(("sizeleak", String::new()));
    for name in listed(&help("sizeleak", "-h", 100)) {
        let below = listed(&help("sizeleak", &format!("{name} -h"), 100));
        commands.extend(below.iter().map(|below| ("sizeleak", format!("{name} {below}"))));
        commands.push(("sizeleak", name));
    }
    commands
}

/// The long flags that a help text explains.
fn flags(help: &str) -> BTreeSet<String> {
    let first = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix('-').filter(|rest| rest.get(1..3) == Some(", ")).map_or(line, |rest| &rest[3..]);
        let flag = line.strip_prefix("--")?;
        Some(flag.split(|letter: char| letter != '-' && !letter.is_ascii_alphanumeric()).next()?.to_owned())
    };
    help.lines().filter(|line| line.starts_with("  ")).filter_map(first).collect()
}

#[test]
fn the_short_help_of_every_command_fits_a_screen() {
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    for (program, words) in commands {
        for columns in [80, 100] {
            let text = help(program, &format!("{words} -h"), columns);
            let lines = text.lines().count();
            assert!(lines <= SCREEN, "{program} {words} -h: {lines} lines of {columns} columns\n{text}");
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= usize::from(columns), "{program} {words} -h: {widest} columns\n{text}");
        }
    }
}

#[test]
fn the_long_help_has_all_that_the_short_one_has_and_exit_codes() {
    for (program, words) in commands() {
        let (short, long) = (help(program, &format!("{words} -h"), 80), help(program, &format!("{words} --help"), 80));
        let (some, all) = (flags(&short), flags(&long));
        assert!(some.is_subset(&all), "{program} {words}: {:?}", some.difference(&all));
        // Subcommands of subcommands have those of the command above.
        let flowing: Vec<&str> = long.split_whitespace().collect();
        assert!(flowing.join(" ").contains("Exit code") || words.contains(' '), "{program} {words}\n{long}");
    }
}

#[test]
fn rare_options_are_only_in_the_long_help_under_headings() {
    let (short, long) = (help("sizeleak", "run -h", 80), help("sizeleak", "run --help", 80));
    let hidden: Vec<String> = flags(&long).difference(&flags(&short)).cloned().collect();
    for flag in ["max-loss", "metrics", "latency-log", "no-sandbox", "cache-dir", "color", "log-format"] {
        assert!(hidden.iter().any(|hidden| hidden == flag), "{flag}: {hidden:?}");
    }
    let headings = ["Arguments:", "Options:", "Input:", "Stages:", "Output:", "Measuring and limits:", "Messages:"];
    assert!(headings.iter().all(|heading| long.lines().any(|line| line == *heading)), "{long}");
}

#[test]
fn manual_pages_explain_options_that_the_short_help_leaves_out() {
    let folder = tempfile::tempdir().unwrap();
    stdout(with("sizeleak", "man -o").arg(folder.path()));
    for (page, texts) in [
        ("sizeleak-run.1", ["The size limit of the cache on disk", "Serve metrics for Prometheus"]),
        ("command-segmenter.1", ["Records of one flow may be this much later", "Keep the right to open any file"]),
    ] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(texts.iter().all(|words| text.contains(words)), "{page}:\n{text}");
    }
}

#[test]
fn the_same_names_stand_for_the_same_everywhere() {
    for command in ["run", "learn", "evaluate", "compare", "adapt"] {
        let text = help("sizeleak", &format!("{command} --help"), 100);
        for flag in ["-r, --input <FILE>", "--recursive", "--from <FILE>", "--pipeline <FILE>", "--gateway <IP|CIDR>"] {
            assert!(text.contains(flag), "{command}: {flag}\n{text}");
        }
        for flag in ["-o, --output <FILE>", "-v, --verbose", "-q, --quiet", "--log-format"] {
            assert!(text.contains(flag), "{command}: {flag}\n{text}");
        }
    }
    for command in ["frames", "plot"] {
        let text = help("sizeleak", &format!("{command} --help"), 100);
        assert!(text.contains("-r, --input <FILE>") && text.contains("-o, --output <FILE>"), "{text}");
    }
    for stage in STAGES {
        let text = help(stage, "-h", 100);
        assert!(text.contains("-v, --verbose") && text.contains("-q, --quiet"), "{text}");
    }
    assert!(help("capture", "-h", 100).contains("-i, --interface <IFACE>"));
}
