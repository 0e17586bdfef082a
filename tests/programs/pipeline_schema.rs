//! `docs/pipeline.schema.json` matches the types, and accepts the pipeline files that the program accepts.

use std::fs;

use jsonschema::Validator;
use serde_json::Value;
use support::programs::{root, sizeleak, stderr, stdout, write};

fn validator() -> Validator {
    let text = fs::read_to_string(root().join("docs/pipeline.schema.json")).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

fn json(toml: &str) -> Value {
    serde_json::to_value(toml.parse::<toml::Table>().unwrap()).unwrap()
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
    let made = String::from_utf8(stdout(&mut sizeleak("schema"))).unwrap();
    let committed = fs::read_to_string(root().join("docs/pipeline.schema.json")).unwrap();
    assert!(made == committed, "regenerate it: sizeleak schema > docs/pipeline.schema.json");
}

#[test]
fn pipelines_of_the_repository_are_valid() {
    for file in ["pipeline.toml", "examples/segmenters/burst.toml"] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let errors: Vec<String> = validator().iter_errors(&json(&text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{file}: {errors:?}");
    }
}

#[test]
fn schema_and_program_accept_the_same_files() {
    let stage = |lines: &str| format!("[[stage]]\nrun = \"capture\"\nfiles = [\"absent.pcap\"]\n{lines}");
    let of = |name: &str, lines: &str| {
        stage(&format!("[[stage]]\ncommand = [\"cat\"]\n[[stage]]\nrun = \"{name}\"\n{lines}\n"))
    };
    let segmenter = |lines: &str| of("command-segmenter", lines);
    for (toml, valid) in [
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
        (of("flow-filter", "gateway = \"10.0.0.1\""), false),
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
    ] {
        assert_eq!(validator().is_valid(&json(&toml)), valid, "the schema on {toml}");
        assert_eq!(is_accepted(&toml), valid, "the program on {toml}");
    }
}
