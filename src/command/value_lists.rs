//! Several values after one flag: `--gateway A B` is `--gateway A --gateway B`.
//!
//! Every flag takes one value. Where a list was always written behind one flag, it goes on as long as an argument can
//! only be meant for that flag; the first that cannot is an operand, such as a capture.

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::Path;

/// A flag that a list may follow, and whether an argument goes on with it.
struct ListFlag {
    flag: &'static str,
    goes_on: fn(&str) -> bool,
}

const LIST_FLAGS: [ListFlag; 4] = [
    ListFlag { flag: "--gateway", goes_on: |text| text.split(',').all(is_address) },
    ListFlag { flag: "--flow", goes_on: |text| text.split(',').all(is_flow) },
    ListFlag { flag: "--kind", goes_on: |text| text.split(',').all(is_word) && !Path::new(text).exists() },
    // They would be taken for captures to learn from.
    ListFlag { flag: "--test-input", goes_on: |_| true },
];

/// The arguments with the flag before every value of a list.
pub(super) fn spread(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut spread = Vec::new();
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let list = LIST_FLAGS.iter().find(|list| argument == OsStr::new(list.flag));
        let is_end = argument == OsStr::new("--");
        spread.push(argument);
        if is_end {
            break;
        }
        let Some(ListFlag { flag, goes_on }) = list else { continue };
        spread.extend(arguments.next());
        let is_value = |next: &OsString| next.to_str().is_some_and(|text| !text.starts_with('-') && goes_on(text));
        while let Some(value) = arguments.next_if(is_value) {
            spread.extend([OsString::from(flag), value]);
        }
    }
    spread.extend(arguments);
    spread
}

/// An address or a network.
fn is_address(text: &str) -> bool {
    let (address, prefix) = text.split_once('/').unwrap_or((text, "0"));
    address.parse::<IpAddr>().is_ok() && is_number(prefix)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A flow by its number, or by `F` and 16 hexadecimal digits.
fn is_flow(text: &str) -> bool {
    let is_text = |digits: &str| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number(text) || text.strip_prefix('F').is_some_and(is_text)
}

/// A word as the names of kinds are.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_spread(typed: &str, expected: &str) {
        let spread = spread(typed.split(' ').map(OsString::from));
        let words: Vec<_> = spread.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn a_list_of_addresses_ends_at_the_first_that_is_none() {
        assert_spread(
            "run --gateway 10.0.0.1 fd00::1 10.1.0.0/16 a.pcap 10.0.0.2",
            "run --gateway 10.0.0.1 --gateway fd00::1 --gateway 10.1.0.0/16 a.pcap 10.0.0.2",
        );
        assert_spread("run --gateway 10.0.0.1,10.0.0.2 pipeline.toml", "run --gateway 10.0.0.1,10.0.0.2 pipeline.toml");
        assert_spread("run --gateway hub -v x.pcap", "run --gateway hub -v x.pcap");
    }

    #[test]
    fn a_list_of_kinds_ends_at_a_file() {
        assert_spread("frames --kind notice summary x.frames", "frames --kind notice --kind summary x.frames");
        assert_spread("frames --kind flow,record examples", "frames --kind flow,record examples");
    }

    #[test]
    fn a_list_of_flows_ends_at_a_file() {
        assert_spread("plot --flow 7 F0000000000000a09 x.svg", "plot --flow 7 --flow F0000000000000a09 x.svg");
        assert_spread("plot --flow 7 Friday", "plot --flow 7 Friday");
    }

    #[test]
    fn arguments_of_other_programs_and_other_flags_stay() {
        for typed in [
            "check-stage --kind packets -- flow-filter --gateway 10.0.0.1 10.0.0.2",
            "run --input a.pcap b.pcap --gateway",
            "run --gateway=10.0.0.1 10.0.0.2",
            "learn --test-input",
        ] {
            assert_spread(typed, typed);
        }
        assert_spread("learn --test-input a b -v c", "learn --test-input a --test-input b -v c");
    }
}
