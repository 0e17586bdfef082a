//! Hands the fuzzer's bytes to the target of this name.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| support::fuzz_targets::inventory_file(input));
