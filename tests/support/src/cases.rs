//! Cases: command lines on pages of `tests/cases`, each with all that it prints.
//!
//! A section of a page is a case. It begins in the folder of a home, which the page names in its first paragraph. A block
//! with the name of a file is that file; the lines behind `$` of a `console` block are run in that folder, and what stands
//! below each is what goes to stdout, what goes to stderr behind `!`, and an exit code that is not 0. A command that ends with
//! `\` goes on in the next line.

use std::env;
use std::fmt::Write;
use std::fs;

use similar::TextDiff;

use crate::archive_home;
use crate::home::Home;
use crate::programs::{root, shell, signals_end_programs};
use crate::transcript::printed;

/// Fails where a command of a page prints something else than the page says, and shows the difference.
///
/// `INSTA_UPDATE=always` writes what is printed into the page.
#[track_caller]
pub fn assert_hold(page: &str) {
    signals_end_programs();
    let file = root().join(format!("tests/cases/{page}.md"));
    let expected = fs::read_to_string(&file).unwrap();
    let found = with_what_is_printed(&expected);
    if env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(file, &found).unwrap();
    } else {
        let difference = TextDiff::from_lines(&expected, &found);
        assert!(expected == found, "tests/cases/{page}.md\n{}", difference.unified_diff());
    }
}

/// The same page with what its commands print now.
fn with_what_is_printed(page: &str) -> String {
    let mut found = String::new();
    let mut home = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        writeln!(found, "{line}").unwrap();
        if line.starts_with("## ") {
            home = Some(home_of(page));
        }
        let Some(block) = line.strip_prefix("```") else { continue };
        let content: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let folder = home.as_ref().expect("a block is in a section").folder();
        if let Some((_, name)) = block.split_once(' ') {
            fs::write(folder.join(name), content.join("\n") + "\n").unwrap();
            found.push_str(&(content.join("\n") + "\n"));
        } else {
            let mut content = content.into_iter();
            while let Some(line) = content.find(|line| line.starts_with("$ ")) {
                let mut command = line.to_owned();
                while command.ends_with('\\') {
                    command.push('\n');
                    command.push_str(content.next().expect("a command ends"));
                }
                let output = shell(folder, &command[2..]).output().unwrap();
                writeln!(found, "{command}\n{}", printed(&output)).unwrap();
                found.truncate(found.trim_end().len());
                found.push('\n');
            }
        }
        found.push_str("```\n");
    }
    found
}

/// The home that a page begins in.
fn home_of(page: &str) -> Home {
    let (introduction, _) = page.split_once("\n## ").unwrap();
    if introduction.contains("the bundled home") {
        Home::bundled()
    } else if introduction.contains("an archive of two homes") {
        let home = Home::bundled();
        archive_home::fill(&home.path("homes"));
        home
    } else if introduction.contains("some weeks of a home") {
        Home::of_weeks().0
    } else {
        panic!("the page does not say in which home it is: {introduction}")
    }
}
