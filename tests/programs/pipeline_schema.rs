//! `docs/pipeline.schema.json` matches the types, and accepts the pipeline files that the program accepts.

use std::fs;
use std::process::Command;

use support::programs::{feed, root, sizeleak, stderr, stdout, write};

/// Whether the schema accepts these files.
fn are_valid<'a>(files: impl IntoIterator<Item = &'a str>) -> Vec<bool> {
    let json = |toml: &str| serde_json::to_string(&toml.parse::<toml::Table>().unwrap()).unwrap() + "\n";
    let mut python = Command::new("python3");
    python.current_dir(root()).args(["tests/programs/pipeline_schema/validate.py", "docs/pipeline.schema.json"]);
    let output = feed(python, files.into_iter().map(json).collect::<String>().into_bytes());
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line == "true").collect()
}

/// Whether the program accepts the form of a file; the files that it names may be missing.
fn is_accepted(toml: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "pipeline.toml", toml);
    let output = sizeleak(&format!("run {} --quiet", file.display())).output().unwrap();
    let said = stderr(&output);
    assert!(!output.status.success(), "the files that it names do not exist");
    let needs_more = ["is missing", "No such file"].iter().any(|words| said.contains(words));
    assert!(needs_more || said.contains("pipeline.toml"), "{said}");
    needs_more
}

#[test]
fn committed_schema_is_current() {
    let made = String::from_utf8(stdout(&mut sizeleak("docs schema"))).unwrap();
    let committed = fs::read_to_string(root().join("docs/pipeline.schema.json")).unwrap();
    assert!(made == committed, "regenerate it: sizeleak docs schema > docs/pipeline.schema.json");
}

/// Pipeline files, and whether they are right.
fn cases() -> Vec<(String, bool)> {
    let stage = |lines: &str| format!("[[stage]]\nrun = \"capture\"\nfiles = [\"absent.pcap\"]\n{lines}");
    let of = |name: &str, lines: &str| {
        stage(&format!("[[stage]]\ncommand = [\"cat\"]\n[[stage]]\nrun = \"{name}\"\n{lines}\n"))
    };
    let segmenter = |lines: &str| of("command-segmenter", lines);
    vec![
        (stage(""), true),
        (stage("[pipeline]\nmode = \"processes\"\nqueue-depth = 3\nlatency-log = \"x.hlog\""), true),
        (stage("[pipeline]\nmode = \"fast\""), false),
        (stage("[pipeline]\nthreads = 3"), false),
        (stage("[pipeline]\nqueue-depth = -1"), false),
        (stage("[other]"), false),
        (stage("recursive = true"), true),
        (stage("recursive = \"yes\""), false),
        (stage("file = \"x\""), false),
        (stage("snaplen = 70000000000"), false),
        (segmenter("gap = \"80ms\"\nmin-size = 5\nalgorithm = \"record\""), true),
        (segmenter("algorithm = \"best\""), false),
        (segmenter("gap = 80"), false),
        (segmenter("min_size = 5"), false),
        (of("flow-filter", "gateway = [\"10.0.0.1\"]\nport = [443]\nallow-absent = true"), true),
        (of("flow-filter", "port = [70000]"), false),
        (of("flow-filter", "gateway = \"10.0.0.1\""), true),
        (of("flow-filter", "gateway = 5"), false),
        (of("record-sizer", "max-flows = 5\nhole-wait = \"PT1S\""), true),
        (of("epsilon-corrector", "model = \"m.toml\"\nk = 3"), true),
        (of("decomposer", "model = \"m.toml\"\nprior = \"flat\"\nfree = true\nlimit = 5"), true),
        (of("pruner", "model = \"m.toml\"\nmode = \"paper\"\nkeep = 0.5"), true),
        (of("pruner", "keep = \"most\""), false),
        (of("prune", ""), false),
        (stage("[[stage]]\ncommand = [\"cat\", \"-u\"]\nname = \"mine\""), true),
        (stage("[[stage]]\ncommand = []"), false),
        (stage("[[stage]]\ncommand = [\"cat\"]\nname = \"\""), false),
        (stage("[[stage]]\ncommand = [\"cat\"]\ngap = \"1s\""), false),
        (stage("[[stage]]\ncommand = [\"cat\"]\nrun = \"pruner\""), false),
        (stage("[[stage]]\nname = \"mine\""), false),
        ("[pipeline]\nmode = \"threads\"".to_owned(), false),
    ]
}

#[test]
fn the_program_accepts_right_files_and_refuses_wrong_ones() {
    for (toml, valid) in cases() {
        assert_eq!(is_accepted(&toml), valid, "{toml}");
    }
}

#[test]
#[ignore = "second tier: needs python3 with jsonschema"]
fn the_schema_accepts_what_the_program_accepts() {
    let bundled = ["pipeline.toml", "examples/segmenters/burst.toml"];
    let bundled = bundled.map(|file| (fs::read_to_string(root().join(file)).unwrap(), true));
    let files: Vec<(String, bool)> = bundled.into_iter().chain(cases()).collect();
    let found = are_valid(files.iter().map(|(toml, _)| toml.as_str()));
    assert_eq!(found.len(), files.len());
    for ((toml, valid), found) in files.iter().zip(found) {
        assert_eq!(found, *valid, "{toml}");
    }
}
