//! Padding policies: their names, files and keys.

use sizeleak_model::LearnedPadding;
use sizeleak_model::policies::{Draw, PaddedSize, PaddingKey, PaddingPolicy, PolicyError, PolicyFile, RandomRow};

#[test]
fn names_read_back() {
    let names = "none multiple:16 powers-of-two padme tls13:128 random:0 random:64 keyed-random:64 constant:512";
    for name in names.split(' ') {
        assert_eq!(name.parse::<PaddingPolicy>().unwrap().to_string(), name);
    }
}

#[test]
fn other_names_are_refused() {
    for name in ["", "pad", "multiple", "multiple:", "multiple:-1", "padme:3", "none:", "multiple:1:2"] {
        assert_eq!(name.parse::<PaddingPolicy>(), Err(PolicyError::Name(name.to_owned())));
    }
    assert_eq!("multiple:0".parse::<PaddingPolicy>(), Err(PolicyError::Unit(0)));
}

fn policies() -> Vec<PaddingPolicy> {
    let padded = vec![PaddedSize { bytes: 7, probability: 0.1 }, PaddedSize { bytes: 9, probability: 0.9 }];
    vec![
        PaddingPolicy::None,
        PaddingPolicy::Multiple { bytes: 16 },
        PaddingPolicy::PowersOfTwo,
        PaddingPolicy::Padme,
        PaddingPolicy::Tls13Multiple { bytes: 128 },
        PaddingPolicy::Random { most: 40, draw: Draw::Independent },
        PaddingPolicy::Constant { bytes: 512 },
        PaddingPolicy::Table { buckets: vec![104, 131] },
        PaddingPolicy::Map { sizes: vec![[1, 3], [2, 2], [3, 3]] },
        PaddingPolicy::RandomTable { rows: vec![RandomRow { size: 7, padded }], draw: Draw::Keyed },
    ]
}

#[test]
fn every_policy_reads_back() {
    for policy in policies() {
        let file = PolicyFile::new(policy, Some("a test".to_owned()));
        assert_eq!(PolicyFile::from_json(&file.to_json().unwrap()).unwrap(), file);
    }
}

#[test]
fn the_format_is_the_documented_one() {
    let text = r#"{ "version": 1, "policy": { "kind": "table", "buckets": [104, 131, 160] } }"#;
    let policy = PaddingPolicy::Table { buckets: vec![104, 131, 160] };
    assert_eq!(PolicyFile::from_json(text).unwrap(), PolicyFile::new(policy, None));
    let random = r#"{"version":1,"policy":{"kind":"random","most":40,"draw":"keyed"}}"#;
    let file = PolicyFile::from_json(random).unwrap();
    assert_eq!(file.policy, PaddingPolicy::Random { most: 40, draw: Draw::Keyed });
    assert_eq!(file.to_json().unwrap(), format!("{random}\n"));
}

#[test]
fn errors_name_the_fault() {
    let error = |policy: &str| {
        let text = format!(r#"{{"version":1,"policy":{policy}}}"#);
        PolicyFile::from_json(&text).unwrap_err().to_string()
    };
    assert!(error(r#"{"kind":"table","buckets":[]}"#).contains("not 0"));
    assert!(error(r#"{"kind":"table","buckets":[5,5]}"#).contains("ascend"));
    assert!(error(r#"{"kind":"table","buckets":[0]}"#).contains("from 1"));
    assert!(error(r#"{"kind":"table","buckets":[-1]}"#).contains("-1"));
    assert!(error(r#"{"kind":"table","buckets":[1],"most":1}"#).contains("unknown field `most`"));
    assert!(error(r#"{"kind":"multiple","bytes":0}"#).contains("from 1"));
    assert!(error(r#"{"kind":"multiple","bytes":1e99}"#).contains("cannot be read"));
    assert!(error(r#"{"kind":"random","most":65536,"draw":"keyed"}"#).contains("65536"));
    assert!(error(r#"{"kind":"map","sizes":[[5,4]]}"#).contains("5 bytes to 4"));
    assert!(error(r#"{"kind":"shrink"}"#).contains("shrink"));
    let row = |padded: &str| {
        error(&format!(r#"{{"kind":"random-table","draw":"keyed","rows":[{{"size":7,"padded":[{padded}]}}]}}"#))
    };
    assert!(row(r#"{"bytes":7,"probability":0.5}"#).contains("row of 7 bytes"));
    assert!(row(r#"{"bytes":6,"probability":1}"#).contains("7 bytes to 6"));
    assert!(row(r#"{"bytes":7,"probability":1.5},{"bytes":8,"probability":-0.5}"#).contains("above 0"));
    let version = PolicyFile::from_json(r#"{"version":2,"policy":{"kind":"new"}}"#).unwrap_err();
    assert_eq!(version, PolicyError::Version { found: 2, known: 1 });
    assert!(PolicyFile::from_json("").is_err() && PolicyFile::from_json("[]").is_err());
}

#[test]
fn a_policy_that_would_not_be_read_is_not_written() {
    let file = PolicyFile::new(PaddingPolicy::Table { buckets: vec![2, 1] }, None);
    assert_eq!(file.to_json(), Err(PolicyError::Order(1)));
}

#[test]
fn the_draw_is_the_start_of_the_keyed_hash() {
    let hash = blake3::keyed_hash(&[7; 32], b"plug on");
    let start = u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap());
    assert_eq!(PaddingKey::new([7; 32]).draw(b"plug on"), start);
    assert_ne!(PaddingKey::new([8; 32]).draw(b"plug on"), start);
    assert_ne!(PaddingKey::new([7; 32]).draw(b"plug off"), start);
}

#[test]
fn a_key_does_not_show_in_messages() {
    assert_eq!(format!("{:?}", PaddingKey::new([7; 32])), "PaddingKey(…)");
}

#[test]
fn sizes_before_padding_are_those_of_the_policy() {
    let padding = LearnedPadding::Policy(PaddingPolicy::Map { sizes: vec![[4, 30], [9, 20], [20, 30]] });
    // Sizes beyond the map go to multiples of its greatest.
    assert_eq!(padding.sizes_before([30, 30]), [0, 30]);
    assert_eq!(padding.sizes_before([20, 21]), [5, 9]);
    assert_eq!(padding.sizes_before([21, 22]), [21, 22], "not padded");
    let is_padded = |size, seen| padding.probability(size, seen) > 0.99;
    assert_eq!([4, 5, 10, 31].map(|size| is_padded(size, [30, 30])), [true, false, true, false]);
    let constant = LearnedPadding::Policy(PaddingPolicy::Constant { bytes: 1_000_000 });
    assert_eq!(constant.sizes_before([1_000_000; 2]), [1, 65_536]);
    assert_eq!(padding.sizes_before([-5, -3]), [-5, -3]);
    assert_eq!([[20, 20], [21, 22], [28, 31], [-5, -3]].map(|seen| padding.pads_to(seen)), [true, false, true, false]);
    assert!(is_padded(21, [21, 22]), "not padded");
    assert_eq!(LearnedPadding::Modulo(16).sizes_before([10, 37]), [0, 37]);
    assert!(LearnedPadding::Modulo(16).probability(3, [37, 37]) > 0.99);
}

#[test]
fn a_number_or_a_policy_is_read() {
    #[derive(serde::Deserialize)]
    struct Keys {
        padding: LearnedPadding,
    }
    let read = |text| toml::from_str::<Keys>(text).map(|keys| keys.padding);
    assert_eq!(read("padding = 16").unwrap(), LearnedPadding::Modulo(16));
    let policy = PaddingPolicy::Table { buckets: vec![104, 131] };
    assert_eq!(read("padding = { kind = \"table\", buckets = [104, 131] }").unwrap(), LearnedPadding::Policy(policy));
    assert!(read("padding = \"much\"").is_err());
}
