//! Records and models for the tests of several modules.

use sizeleak_frame::{ContentType, Direction, Record};
use sizeleak_model::{Model, NoiseStatistics};

pub(crate) const MS: i64 = 1_000_000;

/// |ac| = 60, `on` = 40, `off` = 41, three plugs, ε from −1 to 1; plaintext sizes.
pub(crate) fn model(noise: NoiseStatistics) -> Model {
    let model = Model::from_toml(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[99, -1, 5], [100, 0, 10], [102, 1, 5], [160, 0, 1]]\n\
         [[action]]\nname = \"off\"\nsize = 41\n[[action]]\nname = \"on\"\nsize = 40\n\
         [[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
         [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
         [learned]\nmethod = \"robust\"\ncommands = 21\nversion = \"0\"\nbasis = \"plaintext\"\n\
         cipher_suite = \"X\"\nrecord_overhead = [24, 24]\n",
    );
    Model { noise: Some(noise), ..model.unwrap() }
}

pub(crate) fn record(at_ms: i64, direction: Direction, plaintext: u64) -> Record {
    Record {
        time_ns: at_ms * MS,
        start_ns: at_ms * MS,
        flow: 1,
        direction,
        content_type: ContentType::ApplicationData,
        length: plaintext as u32 + 24,
        plaintext: Some([plaintext; 2]),
        handshake: false,
        protocol: sizeleak_frame::Protocol::Tls,
    }
}

/// A record to the gateway.
pub(crate) fn to(at_ms: i64, plaintext: u64) -> Record {
    record(at_ms, Direction::ToGateway, plaintext)
}

/// A record from the gateway.
pub(crate) fn from(at_ms: i64, plaintext: u64) -> Record {
    record(at_ms, Direction::FromGateway, plaintext)
}
