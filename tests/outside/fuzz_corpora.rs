//! The fuzz targets without a fuzzer: every input of the committed corpora, and a million mutations of them.
//!
//! `SIZELEAK_WRITE_CORPORA=1 cargo test --test outside corpora_hold` rewrites the corpora.

mod corpus;
mod mutation;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use support::fuzz_targets;

/// Mutated inputs per target for data of the network; the four together get a million.
const MUTATIONS: u64 = 250_000;

/// Mutated inputs per target for files, which take longer.
const MUTATED_FILES: u64 = 10_000;

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

fn inputs(target: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder(target)).unwrap().map(|entry| entry.unwrap().path());
    let inputs: BTreeMap<_, _> = entries.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect();
    assert!(!inputs.is_empty(), "{target} has no corpus");
    inputs
}

/// Runs a target on its corpus and on mutations of it. A panic names the seed that reproduces the input.
fn run(target: &str, mutations: u64, call: impl Fn(&[u8])) {
    let inputs = inputs(target);
    for (name, input) in &inputs {
        println!("{name}");
        call(input);
    }
    let inputs: Vec<Vec<u8>> = inputs.into_values().collect();
    for seed in 0..mutations {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let input = &inputs[seed as usize % inputs.len()];
        let mutated = mutation::mutated(input, &inputs, &mut random);
        let _named_on_panic = Named { target, seed };
        call(&mutated);
    }
}

/// Prints the current mutation when a panic unwinds.
struct Named<'a> {
    target: &'a str,
    seed: u64,
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}: mutation {}", self.target, self.seed);
        }
    }
}

support::tests_of! { run {
    #[ignore = "second tier: fuzzing takes minutes"]
    capture_reader_survives_corpus_and_mutations("capture_reader", MUTATIONS, fuzz_targets::capture_reader);
    #[ignore = "second tier: fuzzing takes minutes"]
    packet_parser_survives_corpus_and_mutations("packet_parser", MUTATIONS, fuzz_targets::packet_parser);
    #[ignore = "second tier: fuzzing takes minutes"]
    record_finder_survives_corpus_and_mutations("record_finder", MUTATIONS, fuzz_targets::record_finder);
    #[ignore = "second tier: fuzzing takes minutes"]
    frame_decoder_survives_corpus_and_mutations("frame_decoder", MUTATIONS, fuzz_targets::frame_decoder);
    #[ignore = "second tier: fuzzing takes minutes"]
    model_file_survives_corpus_and_mutations("model_file", MUTATED_FILES, fuzz_targets::model_file);
    #[ignore = "second tier: fuzzing takes minutes"]
    label_file_survives_corpus_and_mutations("label_file", MUTATED_FILES, fuzz_targets::label_file);
    #[ignore = "second tier: fuzzing takes minutes"]
    inventory_file_survives_corpus_and_mutations("inventory_file", MUTATED_FILES, fuzz_targets::inventory_file);
    #[ignore = "second tier: fuzzing takes minutes"]
    pipeline_file_survives_corpus_and_mutations("pipeline_file", MUTATED_FILES, fuzz_targets::pipeline_file);
    #[ignore = "second tier: fuzzing takes minutes"]
    latency_histogram_survives_corpus_and_mutations(
        "latency_histogram", MUTATED_FILES, fuzz_targets::latency_histogram
    );
    #[ignore = "second tier: fuzzing takes minutes"]
    http_request_survives_corpus_and_mutations("http_request", MUTATED_FILES, fuzz_targets::http_request);
} }

#[test]
fn corpora_hold_the_seeds() {
    for corpus::Input { target, name, bytes } in corpus::inputs() {
        let file = folder(target).join(name);
        if std::env::var_os("SIZELEAK_WRITE_CORPORA").is_some() {
            fs::create_dir_all(folder(target)).unwrap();
            fs::write(&file, &bytes).unwrap();
        }
        assert!(fs::read(&file).unwrap() == bytes, "{} is another", file.display());
    }
}
