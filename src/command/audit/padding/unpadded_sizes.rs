//! Which models padding can be computed for.

use anyhow::anyhow;
use sizeleak_model::{Basis, LearnedPadding, Model};

use crate::command::failure::Failure;

/// Refuses models whose sizes are not those that padding starts from.
pub(super) fn check_sizes(model: &Model) -> Result<(), Failure> {
    let fault = match (&model.learned.basis, &model.learned.padding) {
        (_, Some(LearnedPadding::Modulo(bytes))) => {
            format!("it was learned on messages that are already padded to multiples of {bytes} bytes")
        }
        (_, Some(LearnedPadding::Policy(_))) => "it is of a gateway that pads its commands already".to_owned(),
        (Basis::Wire, None) => "it knows sizes on the wire only".to_owned(),
        (Basis::Plaintext { record_overhead: [least, most], .. }, None) if least < most => {
            "it was learned under a block cipher, which hides the exact sizes".to_owned()
        }
        (Basis::Plaintext { .. }, None) => return Ok(()),
    };
    Err(Failure::usage(anyhow!(
        "padding starts from the plaintext sizes of messages, which this model does not have: {fault}; learn from a \
         capture with a handshake, a stream cipher or AES-GCM, and no padding"
    )))
}
