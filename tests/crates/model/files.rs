//! Model files: layout, errors, and reading back.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use sizeleak_model::{
    Action, Basis, CaptureDigest, Device, EpsilonTuple, FitMethod, GatewayRecords, Inventory, Kind, Kinds,
    LearnedPadding, MAX_ACTION_SIZE, MAX_TUPLES, Model, ModelFault, Neighbours, NoiseStatistics, Prior, Provenance,
    ReplyBytesModel, ReplyClass, ReplyCountModel, ReplyWindows, Scope, SingleReplies, SizeBlocks, Smoothing,
};

use super::samples::{model, noise};

#[test]
fn the_layout_is_readable() {
    let text = model().to_toml();
    let first = text.lines().find(|line| !line.starts_with('#')).unwrap();
    assert_eq!(first, "schema = 1");
    assert!(text.contains("    [100, 0, 2], [100, 1, 1],\n    [150, -1, 1],\n"), "{text}");
    assert!(text.contains("actions = [\"on\", "), "{text}");
}

#[test]
fn errors_name_the_fault() {
    let changed = |from: &str, to: &str| {
        let text = model().to_toml();
        assert!(text.contains(from), "{from:?} is not in {text}");
        Model::from_toml(&text.replacen(from, to, 1)).unwrap_err().to_string()
    };
    assert!(changed("schema = 1", "schema = 3").contains("schema 3 is newer than this sizeleak supports (2): "));
    assert!(changed("schema = 1", "schema = 0").contains("no schema 0"));
    assert!(changed("schema = 1", "schema = \"x\"").contains("no schema \"x\""));
    assert!(changed("schema = 1", "").contains("`schema` is missing"));
    assert!(changed("size = 40", "size = 0").contains("at least 1 byte"));
    assert!(changed("size = 40", "size = 40\nsise = 1").contains("unknown field `sise`"));
    let large = changed("size = 40", "size = 524289");
    assert!(large.starts_with("line ") && large.ends_with("an action of 524289 bytes: the limit is 524288"), "{large}");
    let many = changed("count = ", "count = 9999");
    assert!(many.starts_with("line ") && many.contains("devices of a type: the limit is 65535"), "{many}");
    assert!(changed("overhead = 60", "overhead = -9223372036854775808").contains("no message"));
    assert!(changed("k = 3", "k = 0").contains("`k` must be"));
    for wrong in ["-1.0", "nan", "1e10"] {
        assert!(changed("strength = 30.0", &format!("strength = {wrong}")).contains("`strength` must be"), "{wrong}");
    }
    assert!(changed("[100, 0, 2]", "[100, 0, 99999999999999]").contains("99999999999999 times"));
    assert!(changed("[100, 0, 2]", "[100, 0, -1]").contains("-1 times"));
    let too_many = "[100, 0, 2], ".repeat(MAX_TUPLES);
    assert!(changed("[100, 0, 2]", &format!("{too_many}[100, 0, 2]")).contains("at most 100000 tuples, this one has"));
    for figure in ["numbers = [0.5", "decay = 0.5", "shares = [0.75", "concentration = 9.0"] {
        let key = figure.split_inclusive(['=', '[']).next().unwrap_or(figure);
        let open = if figure.contains('[') { "[" } else { "" };
        for wrong in ["nan", "-1.0", "1e300", "0.0"] {
            assert!(changed(figure, &format!("{key} {open}{wrong}")).contains("[prior]"), "{figure} {wrong}");
        }
    }
    assert!(changed("shares = [0.75, ", "shares = [").contains("each [[action]]"));
    for figure in ["nan", "inf", "-1.0", "1e300"] {
        assert!(changed("per_action = 1.0", &format!("per_action = {figure}")).contains("[replies]"), "{figure}");
        assert!(changed("odd = 0.1", &format!("odd = {figure}")).contains("[reply_bytes]"), "{figure}");
    }
    assert!(changed("actions = [\"on\", ", "actions = [").contains("no device"));
    assert!(changed("record_overhead = [17, 18]", "record_overhead = [18, 17]").contains("not a range"));
    assert!(changed("basis = \"plaintext\"", "basis = \"wire\"").contains("has no `cipher_suite`"));
    assert!(changed("sha256 = \"0", "sha256 = \"X").contains("hexadecimal"));
    assert!(changed("commands = ", "comands = ").contains("unknown field `comands`"));
    assert!(Model::from_toml("\0").unwrap_err().to_string().contains("not a model"));
    let table = changed("schema = 1", "schema = 2\n[model]");
    assert!(table.contains(": [model], where a section of a model is [[model]]"), "{table}");
    let foreign = Model::from_toml(&"[weights\n".repeat(200_000)).unwrap_err();
    assert!(matches!(foreign, ModelFault::NoSchema), "a long file without a schema is not parsed: {foreign}");
}

#[test]
fn errors_name_the_file() {
    let endless = Model::read(Path::new("/dev/zero")).unwrap_err().to_string();
    assert_eq!(endless, "/dev/zero: it has more than 16777216 bytes, the limit");
    let missing = Model::read(Path::new("no-such-folder/model.toml")).unwrap_err().to_string();
    assert!(missing.starts_with("no-such-folder/model.toml: "), "{missing}");
    let wrong = Model::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap_err().to_string();
    assert!(wrong.contains("Cargo.toml: ") && wrong.contains("not a model"), "{wrong}");
}

/// Options of a stage by which commands were found, or none.
fn found_with() -> impl Strategy<Value = BTreeMap<String, toml::Table>> {
    prop::option::of(0i64..99).prop_map(|least| {
        let options = least.map(|least| toml::Table::from_iter([("min-size".to_owned(), least.into())]));
        options.map(|options| ("command-segmenter".to_owned(), options)).into_iter().collect()
    })
}

prop_compose! {
    fn any_model()(
        names in prop::collection::btree_set(".{1,8}", 1..5),
        sizes in prop::collection::vec(1i64..=MAX_ACTION_SIZE, 5),
        tuples in prop::collection::vec((-99i64..1 << 31, -9i64..9, 1u64..99), 1..20),
        replies in [0.0f64..10.0, 0.0..10.0, 0.0..1.0, 0.0..10.0],
        (overhead, k, strength, count) in (-99i64..1 << 31, 1usize..200, 0.0f64..1e6, 0u32..9),
        (cipher, name) in (prop::option::of(".{0,9}"), ".{0,9}"),
        method in prop::sample::select(vec![FitMethod::Paper, FitMethod::Robust]),
        bytes in prop::option::of((-9.0f64..99.0, 0.0f64..99.0, 0.1f64..9.0, 0.0f64..0.9)),
        usage in prop::option::of((prop::collection::vec(0.001f64..0.1, 0..9), 0.1f64..0.9, 0.1f64..900.0)),
        noise in prop::option::of(Just(noise())),
        single in prop::option::of((0.0f64..0.9, 0u32..3, 1i64..999, 1u64..99)),
        seen in prop::option::of((1i64..999, 0u32..9, 0i64..999, 1u64..99)),
        found_with in found_with(),
        windows in prop::option::of(Just(ReplyWindows { within_ms: 12_000, gap_ms: 6_500, mostly_ms: 1_400 })),
    ) -> Model {
        let names: Vec<String> = names.into_iter().collect();
        let device = Device { name: "kind".into(), count, actions: names.clone(), safe: true };
        let basis = cipher.map(|cipher_suite| Basis::Plaintext { cipher_suite, record_overhead: [16, 31] });
        let [fixed, per_action, missing, surplus] = replies;
        let tuples = tuples.into_iter().map(|(size, epsilon, times)| EpsilonTuple { size, epsilon, times });
        let shares = vec![1.0 / names.len() as f64; names.len()];
        let actions = names.len();
        let reply_bytes = bytes.map(|(fixed, per_reply, spread, odd)| ReplyBytesModel {
            fixed,
            per_reply,
            per_action: vec![fixed; actions],
            spread,
            odd,
            odd_spread: 99.0,
            odd_deviations: vec![(-7, 1), (30, 4)],
        });
        let single_replies = single.map(|(share, sent, size, times)| SingleReplies {
            merged: share,
            shared: size,
            foreign: share,
            foreign_sizes: vec![(size, times)],
            per_command: vec![0, 1],
            per_action: vec![vec![sent, 1]; actions],
            classes: vec![ReplyClass { missing: share, unseen: 0.0, sizes: vec![(size, times)] }; 2],
        });
        let kinds = seen.map(|seen| Kinds {
            spread: 0.5,
            other: 0.125,
            replies: None,
            list: vec![Kind { actions: vec![(names[0].clone(), 2)], seen: vec![seen.into()] }],
        });
        let prior = usage.map(|(numbers, decay, concentration)| Prior { numbers, decay, shares, concentration, recurring: Vec::new() });
        Model {
            scope: Scope::default(),
            overhead,
            smoothing: Smoothing { k, strength },
            prior,
            actions: names.into_iter().zip(sizes).map(|(name, size)| Action::new(name, size)).collect(),
            kinds,
            inventory: (count > 0).then_some(Inventory { devices: vec![device] }),
            neighbours: Neighbours::new(tuples).unwrap(),
            replies: ReplyCountModel { fixed, per_action, missing, surplus },
            reply_bytes,
            single_replies,
            reply_windows: windows,
            noise,
            learned: Provenance {
                method,
                commands: 3,
                version: "0.1.0".into(),
                basis: basis.unwrap_or(Basis::Wire),
                captures: vec![CaptureDigest { name, sha256: "0f".repeat(32) }],
                padding: None,
                block_rest: None,
                certainty: fixed.clamp(0.0, 1.0),
                warnings: Vec::new(),
                found_with,
                seen: vec![1, u32::MAX],
            },
        }
    }
}

#[test]
fn the_rest_of_blocks_reads_back_and_is_checked() {
    let mut in_blocks = model();
    in_blocks.learned.basis = Basis::Plaintext { cipher_suite: "CBC".into(), record_overhead: [37, 52] };
    // 11 + 37 is a multiple of 16; behind a MAC that is not encrypted blocks end at 15.
    in_blocks.learned.observe_blocks([27, 43, 43, 47]);
    assert_eq!((in_blocks.learned.block_rest, in_blocks.learned.blocks().unwrap().rest), (None, 11));
    assert!(!in_blocks.to_toml().contains("block_rest"));
    in_blocks.learned.observe_blocks([27, 31, 31, 47]);
    assert_eq!(in_blocks.learned.blocks(), Some(SizeBlocks { bytes: 16, rest: 15 }));
    let text = in_blocks.to_toml();
    assert!(text.contains("block_rest = 15\n") && text.contains("schema = 2"), "{text}");
    assert_eq!(Model::from_toml(&text), Ok(in_blocks.clone()));
    let fault = Model::from_toml(&text.replace("block_rest = 15", "block_rest = 16")).unwrap_err();
    assert!(fault.to_string().contains("modulo 16 bytes: 16 is not less"), "{fault}");
    let fault = Model::from_toml(&text.replace("[37, 52]", "[37, 37]")).unwrap_err();
    assert!(fault.to_string().contains("`block_rest` is for sizes in blocks"), "{fault}");
    // No rest that more than half of them leave is one of blocks, as sizes of QUIC show.
    in_blocks.learned.observe_blocks([27, 28, 31, 31]);
    assert_eq!(in_blocks.learned.block_rest, None);
    in_blocks.learned.padding = Some(LearnedPadding::Modulo(32));
    in_blocks.learned.observe_blocks([3, 35, 67]);
    assert_eq!(in_blocks.learned.blocks(), Some(SizeBlocks { bytes: 32, rest: 3 }));
    let blocks = in_blocks.learned.blocks().unwrap();
    assert_eq!([0, 3, 4, 35, 36].map(|size| blocks.greatest(size)), [3, 3, 35, 35, 67]);
}

#[test]
fn sizes_that_vary_read_back_and_are_checked() {
    let mut varying = model();
    varying.actions[0] = Action::of_sizes("on", &[(40, 3.0), (41, 1.0), (44, 2.0)]).unwrap();
    let text = varying.to_toml();
    assert!(
        text.contains("sizes = [[40, 0.5], [41, 0.166667], [44, 0.333333]]") && text.contains("schema = 2"),
        "{text}"
    );
    assert_eq!(Model::from_toml(&text), Ok(varying));
    for wrong in [
        "[[40, 1.0]]",
        "[[41, 0.5], [40, 0.5]]",
        "[[40, 0.5], [40, 0.5]]",
        "[[40, 0.5], [41, 0.1]]",
        "[[40, 1.5], [41, -0.5]]",
        "[[40, 0.4], [41, 0.6]]",
        "[[42, 0.5], [43, 0.5]]",
        "[[0, 0.5], [40, 0.5]]",
        "[[40, 0.5], [4000, 0.5]]",
        "[[40, nan], [41, 0.5]]",
    ] {
        let wrong = text.replace("[[40, 0.5], [41, 0.166667], [44, 0.333333]]", wrong);
        assert!(matches!(Model::from_toml(&wrong), Err(ModelFault::Bounds(_))), "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_model_reads_back_from_toml(model in any_model()) {
        let text = model.to_toml();
        prop_assert_eq!(Model::from_toml(&text), Ok(model), "{}", text);
    }

    #[test]
    fn any_other_text_is_an_error(text in ".{0,200}") {
        prop_assert!(Model::from_toml(&text).is_err());
    }

    #[test]
    fn any_changed_byte_is_an_error_or_another_valid_model(at: prop::sample::Index, byte in 32u8..127) {
        let mut text = model().to_toml().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(text) = String::from_utf8(text) && let Ok(model) = Model::from_toml(&text) {
            prop_assert_eq!(Model::from_toml(&model.to_toml()), Ok(model));
        }
    }
}

#[test]
fn each_size_is_one_line() {
    let text = model().to_toml();
    assert!(text.contains("[noise]\ncommands = 9\n") && text.contains("\nwritten = \"whole\"\n"), "{text}");
    assert!(text.contains("    { size = 23, alone = 40, every_ms = 120000, on_beat = 39 },\n"), "{text}");
    assert!(text.contains("from_gateway = [\n    { size = 60, times = 12, answered = 12, by = 19 },\n]\n"), "{text}");
}

#[test]
fn shares_of_answers_and_replies_classify_gateway_records() {
    let reading = GatewayRecords { times: 12, replies: 5, answered: 4, commands: 1, ..Default::default() };
    assert!(reading.is_answered() && reading.is_telemetry() && !reading.brings_commands());
    let status = GatewayRecords { times: 12, replies: 6, answered: 3, ..Default::default() };
    assert!(!status.is_answered() && !status.is_telemetry());
    assert!(!GatewayRecords { times: 3, ..Default::default() }.is_telemetry(), "three may be a coincidence");
    let poll = GatewayRecords { times: 90, answered: 16, commands: 4, ..Default::default() };
    assert!(poll.brings_commands());
}

/// What is wrong with a model file after a change.
fn fault(change: impl FnOnce(&mut Model)) -> String {
    let mut changed = model();
    change(&mut changed);
    Model::from_toml(&changed.to_toml()).map_or_else(|fault| fault.to_string(), |_| "nothing".to_owned())
}

#[test]
fn inconsistent_counts_are_reported() {
    let of_noise = |change: fn(&mut NoiseStatistics)| fault(|model| change(model.noise.as_mut().unwrap()));
    assert_eq!(of_noise(|_| ()), "nothing");
    assert!(of_noise(|noise| noise.replied = 10).contains("greater than the whole"));
    assert!(of_noise(|noise| noise.to_gateway[0].on_beat = 90).contains("greater than the whole"));
    assert!(of_noise(|noise| noise.continued = vec![23; 600]).contains("too many"));
    assert!(of_noise(|noise| noise.commands = 1 << 60).contains("out of bounds"));
    assert!(of_noise(|noise| noise.to_gateway[1].size = 19).contains("ascending order"));
    assert!(of_noise(|noise| noise.from_gateway = vec![GatewayRecords::default(); 600]).contains("too many"));
}

#[test]
fn windows_of_replies_are_bounded() {
    let of_windows = |within_ms, gap_ms, mostly_ms| {
        fault(|model| model.reply_windows = Some(ReplyWindows { within_ms, gap_ms, mostly_ms }))
    };
    assert_eq!([of_windows(60_000, 60_000, 1_000), of_windows(12_000, 800, 1_000)], ["nothing"; 2]);
    for (within_ms, gap_ms, mostly_ms) in
        [(60_001, 800, 1_000), (0, 0, 1_000), (3_000, 0, 1_000), (3_000, 3_001, 1_000), (3_000, 800, 60_001)]
    {
        assert!(of_windows(within_ms, gap_ms, mostly_ms).contains("[segmenter]"), "{within_ms} {gap_ms} {mostly_ms}");
    }
}
