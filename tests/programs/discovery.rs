//! Help with examples and exit codes, completions, manual pages and templates.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use support::programs::{OPTIONAL_STAGES, STAGES, root, sizeleak, stdout};

use crate::help::listed;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_guide_documents_every_exit_code() {
    let guide = fs::read_to_string(root().join("docs/guide.md")).unwrap();
    let help = text(stdout(&mut sizeleak("--help")));
    let codes = help.split("Exit code: ").nth(1).unwrap().trim_end().trim_end_matches('.');
    for code in codes.split(", ") {
        let number = code.split(' ').next().unwrap();
        assert!(guide.contains(&format!("| {number} |")), "{code}");
    }
}

#[test]
fn every_program_and_subcommand_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    stdout(sizeleak("docs man -o").arg(folder.path()));
    let pages = names(folder.path());
    let subcommands = listed(&text(stdout(&mut sizeleak("--help"))));
    let subpages = subcommands.iter().map(|name| format!("sizeleak-{name}.1"));
    let stages = STAGES.iter().chain(&OPTIONAL_STAGES);
    for page in stages.map(|stage| format!("{stage}.1")).chain(["sizeleak.1".to_owned()]).chain(subpages) {
        assert!(pages.contains(&page), "{page} is not among {pages:?}");
        let text = fs::read_to_string(folder.path().join(&page)).unwrap();
        assert!(text.contains(".SH NAME") && text.contains("Exit code: 0 "), "{page}: {text}");
    }
}

#[test]
fn every_program_has_completions_for_every_shell() {
    let subcommands = listed(&text(stdout(&mut sizeleak("--help"))));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let folder = tempfile::tempdir().unwrap();
        stdout(sizeleak(&format!("docs {shell} -o")).arg(folder.path()));
        let files = names(folder.path());
        assert_eq!(files.len(), 9, "{shell}: {files:?}");
        for program in STAGES.iter().chain(&OPTIONAL_STAGES).chain(&["sizeleak"]) {
            assert!(files.iter().any(|file| file.contains(program)), "{shell}: {program} is not in {files:?}");
        }
        let own = text(stdout(&mut sizeleak(&format!("docs {shell}"))));
        assert!(subcommands.iter().all(|name| own.contains(name.as_str())), "{shell}");
    }
}
