//! A model and a command for the tests of several modules.

use sizeleak_frame::Command;
use sizeleak_model::Model;

/// A model of two actions with this [replies].
pub(crate) fn model(rest: &str) -> Model {
    Model::from_toml(&format!(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
         [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n{rest}\
         [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\n\
         basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n"
    ))
    .unwrap()
}

/// A command of 100 bytes under a cipher that adds 25, with these replies.
pub(crate) fn command(replies: u32, reply_bytes: u64) -> Command {
    let (size, plaintext) = (125, Some([100, 100]));
    Command { time_ns: 1, end_ns: 2, flow: 3, size, plaintext, records: 1, replies, reply_bytes, ..Command::default() }
}
