//! A flow's number as people and exports write it.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use thiserror::Error;

/// A flow's number in its text form: `F` and 16 hexadecimal digits, as `F50bc1f2e0000a3f8`. A number of 64 bits loses
/// digits where numbers are floats (JavaScript, jq, spreadsheets); nothing takes the text for a number, whatever its
/// digits are. In frames a flow is the number itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowId(pub u64);

/// A text that names no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("write a flow as exports name it (F and 16 hexadecimal digits), or by its number in frames")]
pub struct NoFlowId;

const DIGITS: usize = 16;

impl Display for FlowId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        // As one text, so that a width applies to it.
        formatter.pad(&format!("F{:0DIGITS$x}", self.0))
    }
}

impl FromStr for FlowId {
    type Err = NoFlowId;

    fn from_str(text: &str) -> Result<Self, NoFlowId> {
        let is_plain = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = match text.strip_prefix('F') {
            Some(digits) if digits.len() == DIGITS && is_plain(digits) => u64::from_str_radix(digits, 16),
            None if is_plain(text) => text.parse(),
            _ => return Err(NoFlowId),
        };
        number.map(Self).map_err(|_| NoFlowId)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_form_has_a_fixed_length_and_is_no_number() {
        assert_eq!(FlowId(7).to_string(), "F0000000000000007");
        assert_eq!(FlowId(u64::MAX).to_string(), "Fffffffffffffffff");
        assert_eq!(format!("{:<20}|", FlowId(1)), "F0000000000000001   |");
    }

    #[test]
    fn number_of_the_frames_names_a_flow_too() {
        assert_eq!("7".parse(), Ok(FlowId(7)));
        assert_eq!("18446744073709551615".parse(), Ok(FlowId(u64::MAX)));
    }

    #[test]
    fn other_texts_name_no_flow() {
        let wrong = ["", "F", "F7", "f0000000000000007", "F000000000000000g", "F+00000000000007", "-1", "+7", "1e3"];
        for text in wrong.into_iter().chain(["18446744073709551616", "F00000000000000007", "Fé0000000000000"]) {
            assert_eq!(text.parse::<FlowId>(), Err(NoFlowId), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_form_reads_back(number: u64) {
            prop_assert_eq!(FlowId(number).to_string().parse(), Ok(FlowId(number)));
        }
    }
}
