//! The help of every command fits a screen, and its long form has everything, under headings, with examples and exit codes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use support::programs::{OPTIONAL_STAGES, STAGES, stdout, with};
use support::transcript::assert_shown;

/// A screen, in lines.
const SCREEN: usize = 40;

/// What a program prints on a terminal of this width.
fn help(program: &str, arguments: &str, columns: u16) -> String {
    let mut command: Command = with(program, arguments);
    String::from_utf8(stdout(command.env("COLUMNS", columns.to_string()))).unwrap()
}

/// The names of the subcommands that a help text lists.
pub(crate) fn listed(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

/// All programs and subcommands: a program, and the words behind it. Subcommands of subcommands follow theirs.
fn commands() -> Vec<(&'static str, String)> {
    let mut commands: Vec<_> = STAGES.iter().chain(&OPTIONAL_STAGES).map(|stage| (*stage, String::new())).collect();
    commands.push(("sizeleak", String::new()));
    for name in listed(&help("sizeleak", "-h", 100)) {
        let below = listed(&help("sizeleak", &format!("{name} -h"), 100));
        commands.push(("sizeleak", name.clone()));
        commands.extend(below.iter().map(|below| ("sizeleak", format!("{name} {below}"))));
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
fn the_long_help_has_all_that_the_short_one_has_and_an_example_and_exit_codes() {
    for (program, words) in commands() {
        let (short, long) = (help(program, &format!("{words} -h"), 80), help(program, &format!("{words} --help"), 80));
        let (some, all) = (flags(&short), flags(&long));
        assert!(some.is_subset(&all), "{program} {words}: {:?}", some.difference(&all));
        // Subcommands of subcommands have those of the command above.
        if !words.contains(' ') {
            let example = long.split("Example").nth(1).unwrap_or_else(|| panic!("no example: {long}"));
            assert!(example.lines().nth(1).is_some_and(|line| line.starts_with("  ")), "{long}");
            let flowing: Vec<&str> = long.split_whitespace().collect();
            // Those of all commands stand in the help of the program.
            let has_codes = flowing.join(" ").contains("Exit code: 0 ");
            assert!(has_codes || program == "sizeleak" && !words.is_empty(), "{program} {words}\n{long}");
        }
    }
}

/// One snapshot for the seven stages, and one for each command with those below it.
#[test]
fn help_is_what_it_was() {
    let mut texts: Vec<(String, String)> = Vec::new();
    for (program, words) in commands() {
        let name = words.split(' ').next().unwrap();
        let name = if program == "sizeleak" { format!("help-sizeleak-{name}") } else { "help-stages".to_owned() };
        let text = format!("$ {program} {words} --help\n{}\n", help(program, &format!("{words} --help"), 100));
        match texts.last_mut() {
            Some((last, texts)) if *last == name => texts.push_str(&text),
            _ => texts.push((name, text)),
        }
    }
    for (name, text) in texts {
        assert_shown(name.trim_end_matches('-'), &text);
    }
}

/// Pages that show commands, from the top of the project.
const PAGES: [&str; 4] = ["README.md", "docs/*.md", "examples/**/*.md", "deploy/**/*.md"];

#[test]
fn docs_show_options_that_there_are() {
    let subcommands = commands().into_iter().map(|(_, words)| words).filter(|words| !words.is_empty());
    let known = subcommands.map(|words| (words.clone(), flags(&help("sizeleak", &format!("{words} --help"), 100))));
    let known: BTreeMap<String, BTreeSet<String>> = known.collect();
    let of_all = flags(&help("sizeleak", "--help", 100));
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = PAGES.iter().flat_map(|page| glob::glob(top.join(page).to_str().unwrap()).unwrap());
    let mut seen = 0;
    for page in pages.map(Result::unwrap) {
        let text = fs::read_to_string(&page).unwrap().replace("\\\n", " ");
        for command in text.lines().flat_map(|line| line.split("sizeleak ").skip(1)) {
            let command = command.split(['|', '`', ';', '\'', '"', '#', ')']).next().unwrap();
            let words: Vec<&str> = command.split_whitespace().take_while(|word| *word != "--").collect();
            let of_words = |count: usize| known.get(&words.iter().take(count).copied().collect::<Vec<_>>().join(" "));
            let own: Vec<_> = (1..=2).filter_map(of_words).collect();
            for flag in words.iter().filter_map(|word| word.strip_prefix("--")).filter(|_| !own.is_empty()) {
                let flag = flag.split('=').next().unwrap();
                let is_known = of_all.contains(flag) || own.iter().any(|flags| flags.contains(flag));
                assert!(is_known, "{}: `sizeleak {command}`: there is no --{flag}", page.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen}");
}
