//! Tests of `pipeline`.

use super::*;

#[test]
fn set_text_accepts_valid_options_and_reports_invalid_ones() {
    let mut pipeline = Pipeline::standard();
    pipeline.set("pruner", "mode", "paper").unwrap();
    pipeline.set_text("flow-filter.port=[443, 8883]").unwrap();
    pipeline.set_text("command-segmenter.gap=80ms").unwrap();
    pipeline.set_text("flow-filter.gateway=10.0.0.1").unwrap();
    assert_eq!(pipeline.option("flow-filter", "gateway"), Some(&Value::from(vec!["10.0.0.1"])));
    assert_eq!(pipeline.option("pruner", "mode"), Some(&Value::from("paper")));
    assert_eq!(pipeline.option("command-segmenter", "gap"), Some(&Value::from("80ms")));
    for (wrong, why) in [
        ("pruner.mode=loud", "loud"),
        ("pruner.modes=paper", "modes"),
        ("prune.mode=paper", "no such stage"),
        ("pruner=paper", "STAGE.KEY=VALUE"),
        ("decomposer.limit=-1", "limit"),
    ] {
        let error = pipeline.set_text(wrong).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn typed_options_replace_those_that_were_set() {
    let mut pipeline = Pipeline::standard();
    pipeline.set_text("flow-filter.port=443").unwrap();
    pipeline.set_text("flow-filter.save=f.frames").unwrap();
    let mut other = pipeline.clone();
    let options = sizeleak_flow_filter::Options { gateway: vec!["10.0.0.1".into()], ..Default::default() };
    pipeline.configure(&options).unwrap();
    assert_eq!(pipeline.options("flow-filter").unwrap().keys().collect::<Vec<_>>(), ["gateway"]);
    assert!(pipeline.stages[1].save.is_some());
    other.set("flow-filter", "gateway", vec!["10.0.0.1"]).unwrap();
    other.set("flow-filter", "port", Vec::<i64>::new()).unwrap();
    let resolved = |pipeline: &Pipeline| pipeline.resolved_stages()[1].options.clone();
    assert_eq!(resolved(&pipeline), resolved(&other));
    let error = pipeline.before("pruner").configure(&sizeleak_pruner::Options::default()).unwrap_err();
    assert_eq!((error.exit_code(), error.fault.as_str()), (2, "the pipeline has no stage `pruner`"));
}

#[test]
fn records_are_sized_as_where_the_model_was_learned() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.toml");
    let model = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 9]]\n[[action]]\nname = \"on\"\nsize = 40\n\
        [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.0\nsurplus = 0.0\n\
        [learned]\nmethod = \"robust\"\ncommands = 9\nversion = \"0\"\nbasis = \"wire\"\n\
        [learned.found_with.record-sizer]\nplain-tcp = true\nburst-gap = \"9ms\"\n";
    std::fs::write(&file, model).unwrap();
    let mut pipeline = Pipeline::standard();
    pipeline.set("record-sizer", "burst-gap", "5ms").unwrap();
    pipeline.use_model(&file).unwrap();
    let option = |key| pipeline.option("record-sizer", key).cloned();
    assert_eq!((option("plain-tcp"), option("burst-gap")), (Some(true.into()), Some("5ms".into())));
}

#[test]
fn use_model_sets_every_stage_that_takes_a_model() {
    let mut pipeline = Pipeline::standard();
    pipeline.use_model(Path::new("m.toml")).unwrap();
    let with_model = STAGES.iter().filter(|entry| pipeline.option(entry.name, "model") == Some(&Value::from("m.toml")));
    let takes_model =
        |entry: &&StageEntry| (entry.command)().get_arguments().any(|argument| argument.get_id() == "model");
    let names = |entry: &StageEntry| entry.name;
    assert_eq!(
        with_model.map(names).collect::<Vec<_>>(),
        STAGES.iter().filter(takes_model).map(names).collect::<Vec<_>>()
    );
}

#[test]
fn save_is_set_by_name_and_is_not_an_option() {
    let mut pipeline = Pipeline::standard();
    pipeline.set_text("record-sizer.save=r.frames.zst").unwrap();
    let saves = |pipeline: &Pipeline| pipeline.stages.iter().filter_map(|stage| stage.save.clone()).collect::<Vec<_>>();
    assert_eq!(saves(&pipeline), [PathBuf::from("r.frames.zst")]);
    assert_eq!(pipeline.option("record-sizer", "save"), None, "it is not an option of the stage");
    assert!(pipeline.set_text("record-sizer.save=-").unwrap_err().to_string().contains("the file to write to"));
    assert!(saves(&pipeline.without_saves()).is_empty());
}

#[test]
fn until_and_before_cut_the_pipeline() {
    let part = Pipeline::standard().until("command-segmenter").unwrap();
    assert!(part.has("command-segmenter") && !part.has("epsilon-corrector"));
    assert!(part.until("pruner").is_err());
    let part = Pipeline::standard().before("epsilon-corrector");
    assert!(part.has("command-segmenter") && !part.has("epsilon-corrector"));
    assert!(part.before("pruner").has("command-segmenter"), "all of it");
}

fn names(pipeline: &Pipeline) -> Vec<&str> {
    pipeline.stages.iter().map(PipelineStage::name).collect()
}

fn last_of(kinds: &[&str]) -> String {
    names(&Pipeline::standard().making(kinds, None)).last().copied().unwrap_or_default().to_owned()
}

#[test]
fn pipeline_ends_with_the_stage_that_makes_the_last_kind() {
    for (kind, stage) in [
        ("packets", "capture"),
        ("segments", "flow-filter"),
        ("flow", "flow-filter"),
        ("session", "record-sizer"),
        ("record", "record-sizer"),
        ("command", "command-segmenter"),
        ("correction", "epsilon-corrector"),
        ("identification", "pruner"),
    ] {
        assert_eq!(last_of(&[kind]), stage, "{kind}");
    }
    assert_eq!(last_of(&["command", "flow"]), "command-segmenter");
    assert_eq!(last_of(&["record", "notice", "summary"]), "record-sizer");
}

#[test]
fn kinds_that_every_stage_emits_or_nobody_knows_need_all_stages() {
    for kinds in [&[][..], &["notice"], &["summary", "session"], &["flow", "own_kind"], &["hello"]] {
        assert_eq!(last_of(kinds), "pruner", "{kinds:?}");
    }
}

#[test]
fn saved_output_and_the_start_of_a_run_are_kept() {
    let mut pipeline = Pipeline::standard();
    assert_eq!(names(&pipeline.making(&["flow"], Some(2))).len(), 3);
    pipeline.set("decomposer", "save", "all.frames").unwrap();
    assert_eq!(names(&pipeline.making(&["record"], None)).last(), Some(&"decomposer"));
}

#[test]
fn programs_behind_a_maker_or_in_its_place_are_kept() {
    let text = "[[stage]]\nrun = \"capture\"\n[[stage]]\nrun = \"flow-filter\"\n[[stage]]\nrun = \"record-sizer\"\n\
                [[stage]]\ncommand = [\"mine\"]\nname = \"mine\"\n[[stage]]\nrun = \"epsilon-corrector\"\n";
    let pipeline = Pipeline::parse(text, Path::new("")).unwrap();
    assert_eq!(names(&pipeline.making(&["record"], None)).last(), Some(&"mine"));
    assert_eq!(names(&pipeline.making(&["command"], None)).last(), Some(&"mine"));
    assert_eq!(names(&pipeline.making(&["correction"], None)).last(), Some(&"epsilon-corrector"));
}

#[test]
fn kinds_that_a_later_stage_consumes_are_named_with_it() {
    let kinds = ["record", "command", "flow", "notice"].map(str::to_owned);
    let part = Pipeline::standard().making(&kinds, None);
    assert_eq!(part.consumed(&kinds), [("record", "command-segmenter")]);
    assert_eq!(part.consumed(&["identification".to_owned()]), []);
}
