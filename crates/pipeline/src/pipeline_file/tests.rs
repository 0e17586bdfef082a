//! Tests of `pipeline_file`.

use super::*;
use crate::Mode;

const FILE: &str = "there/pipeline.toml";

fn parse(text: &str) -> Result<Pipeline, ConfigError> {
    Pipeline::parse(text, Path::new(FILE))
}

#[test]
fn file_sets_stages_settings_and_paths_relative_to_its_folder() {
    let pipeline = parse(
        "[pipeline]\nmode = \"processes\"\nqueue-depth = 4\nlatency-log = \"l.hlog\"\n\
             [[stage]]\nrun = \"capture\"\nfiles = [\"a.pcap\", \"/b.pcap\"]\n\
             [[stage]]\nrun = \"flow-filter\"\ngateway = [\"10.0.0.1\"]\nport = [443]\n\
             [[stage]]\ncommand = [\"./mine\", \"-x\"]\nsave = \"mine.frames.zst\"\n",
    )
    .unwrap();
    assert_eq!(pipeline.stages[2].save.as_deref(), Some(Path::new("there/mine.frames.zst")));
    assert_eq!((pipeline.settings.mode, pipeline.settings.queue_depth), (Mode::Processes, 4));
    assert_eq!(pipeline.settings.latency_log.as_deref(), Some(Path::new("there/l.hlog")));
    let files: Value = vec!["there/a.pcap", "/b.pcap"].into();
    assert_eq!(pipeline.option("capture", "files"), Some(&files));
    assert_eq!(pipeline.option("capture", "recursive"), None, "not set");
    let StageKind::External { name, command } = &pipeline.stages[2].kind else { panic!("{pipeline:?}") };
    assert_eq!((name.as_str(), command.join(" ").as_str()), ("mine", "./mine -x"));
}

#[test]
fn errors_name_and_quote_the_line() {
    for (text, line, words) in [
        ("\n[pipeline]\nmode = \"fast\"", 3, "fast"),
        ("[pipeline]\n\nthreads = 3", 3, "threads"),
        ("[[stage]]\nrun = \"capture\"\n\nfile = \"x\"", 4, "file"),
        ("[[stage]]\nrun = \"capture\"\nfiles = 3", 3, "files"),
        ("[[stage]]\nrun = \"segmenter\"", 2, "`segmenter` is not a stage"),
        ("[[stage]]\nfiles = []", 1, "needs `run"),
        ("[[stage]]\ncommand = []", 2, "list of a program"),
        ("[[stage]]\ncommand = [\"x\"]\nlimit = 2", 3, "argument"),
        ("[[stage]]\nrun = \"capture\"\ncommand = [\"x\"]", 3, "not both"),
        ("[[stage]]\nrun = \"capture\"\n[[stage]]\nrun = \"pruner\"", 4, "identification"),
        ("[[stage]]\nrun = \"flow-filter\"", 2, "first"),
        ("[stages]", 1, "means nothing"),
        ("x = [1,", 1, ""),
        ("stage = 3", 1, "table"),
        ("[[stage]]\nrun = \"decomposer\"\nlimit = 99999999999999999999", 3, "too large"),
        ("[[stage]]\nrun = \"capture\"\nsave = 3", 3, "the file to write to"),
        ("[pipeline]\nqueue-depth = 4097", 2, "at most 4096 parcels can wait in a channel, not 4097"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.line, error.exit_code()), (Some(line), 2), "{text}: {error}");
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert!(error.to_string().starts_with("there/pipeline.toml, line "), "{error}");
        let quoted = format!("\n  {line} | {}", text.lines().nth(line - 1).unwrap());
        assert!(error.to_string().ends_with(&quoted), "{error}");
    }
}

#[test]
fn errors_suggest_the_most_similar_word() {
    for (text, meant) in [
        ("[pipelin]", "`pipeline`"),
        ("[[stages]]\nrun = \"capture\"", "`stage`"),
        ("[pipeline]\nqueue_depth = 3", "`queue-depth`"),
        ("[pipeline]\nmode = \"thread\"", "`threads`"),
        ("[[stage]]\nrun = \"captur\"", "`capture`"),
        ("[[stage]]\nruns = \"capture\"", "`run`"),
        ("[[stage]]\nrun = \"capture\"\nfile = \"x\"", "`files`"),
        ("[[stage]]\nrun = \"pruner\"\nmode = \"learnt\"", "`learned`"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(&format!("did you mean {meant}?")), "{text}: {error}");
    }
}

#[test]
fn missing_file_is_an_error_that_names_it() {
    let error = Pipeline::read(Path::new("no-such/pipeline.toml")).unwrap_err();
    assert!(error.to_string().starts_with("no-such/pipeline.toml: "), "{error}");
    assert_eq!(error.exit_code(), 1);
}
