//! Help with examples and exit codes, completions, manual pages and templates.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use support::programs::{GATEWAY, OPTIONAL_STAGES, STAGES, example, root, sizeleak, stderr, stdout};

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// The subcommands, as the help of `sizeleak` lists them.
fn subcommands() -> Vec<String> {
    let help = text(stdout(&mut sizeleak("--help")));
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
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
    let subcommands = subcommands();
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
    let subcommands = subcommands();
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

#[test]
fn template_of_init_runs_when_filled_in() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let said = sizeleak("init").arg(&home).output().unwrap();
    assert!(said.status.success(), "{}", stderr(&said));
    let expected = ["inventory.toml", "labels.csv", "pipeline.schema.json", "pipeline.toml"].map(str::to_owned);
    assert_eq!(names(&home), expected.into());
    let file = home.join("pipeline.toml").display().to_string();
    let (capture, model) = (example("test.pcap"), example("model.toml"));
    let filled = format!("{capture} --gateway {GATEWAY} --model {model} --format ndjson --quiet");
    let ran = stdout(&mut sizeleak(&format!("run {file} {filled}")));
    assert!(ran == stdout(&mut sizeleak(&format!("run pipeline.toml {filled}"))), "the defaults differ");
    // Without changes, the error quotes the first line to fill in.
    let output = sizeleak(&format!("run {file}")).output().unwrap();
    assert!(stderr(&output).contains("files = [\"capture.pcap\"]"), "{}", stderr(&output));

    fs::write(home.join("labels.csv"), "mine").unwrap();
    fs::remove_file(home.join("pipeline.toml")).unwrap();
    let again = sizeleak("init").arg(&home).output().unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("pipeline.schema.json exists already"), "{}", stderr(&again));
    assert_eq!(fs::read(home.join("labels.csv")).unwrap(), b"mine");
    assert!(!home.join("pipeline.toml").exists(), "all or none");
}
