//! The cipher suites that handshakes showed, by flow; and what the lengths of records say about the cipher suite of a
//! session whose handshake was not captured.
//!
//! Under a block cipher (CBC) all records of a session have lengths that are alike modulo its block of 8 or 16 bytes,
//! whether the MAC is encrypted or not (RFC 5246, section 6.2.3.2; RFC 7366). AEAD and stream ciphers add a fixed
//! number of bytes to any length. So two lengths can exclude a block cipher, and several that are alike show one.

use std::collections::{BTreeMap, VecDeque};

use sizeleak_frame::Command;
use sizeleak_model::{Basis, Model};

/// The block of AES, in bytes, and the smallest one of any suite.
const BLOCKS: [u64; 2] = [16, 8];

/// So many different lengths that are alike modulo a block show a block cipher: they are so by chance with a
/// probability of 16⁻⁵, which is one in a million.
const LENGTHS_OF_A_BLOCK_CIPHER: usize = 6;

/// What a model's cipher suite makes of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SuiteLengths {
    /// It adds so many bytes to a record. Whether messages fill blocks by themselves, because their sender pads them.
    Added {
        bytes: u32,
        messages_fill_blocks: bool,
    },
    Blocks,
}

impl SuiteLengths {
    /// Those of the suite that a model was learned on; `None` if that is unknown.
    pub(crate) fn of(model: &Model) -> Option<Self> {
        let Basis::Plaintext { record_overhead: [least, most], .. } = &model.learned.basis else { return None };
        if least < most {
            return Some(Self::Blocks);
        }
        let mut residues = model.neighbours.tuples().iter().map(|tuple| tuple.size.rem_euclid(16));
        let first = residues.next();
        let messages_fill_blocks = model.learned.padding.is_some() || residues.all(|residue| Some(residue) == first);
        Some(Self::Added { bytes: *least, messages_fill_blocks })
    }
}

/// The different lengths of records that were seen in a session.
#[derive(Debug, Default)]
pub(crate) struct LengthEvidence {
    /// At most [`LENGTHS_OF_A_BLOCK_CIPHER`].
    different: Vec<u64>,
    /// Whether a length was not like the others modulo each of [`BLOCKS`].
    differs: [bool; 2],
}

impl LengthEvidence {
    /// Adds a command; returns why its session cannot use the model's suite, as soon as that is certain.
    pub(crate) fn contradiction(&mut self, command: &Command, model: SuiteLengths) -> Option<&'static str> {
        if let SuiteLengths::Added { bytes, .. } = model
            && command.size < u64::from(bytes) * u64::from(command.records)
        {
            return Some("its records are shorter than what that suite adds to them");
        }
        // Of several records only the sum is known.
        if command.records == 1 {
            self.add(command.size);
        }
        let [of_long_blocks, of_any_blocks] = self.differs;
        match model {
            SuiteLengths::Blocks if of_any_blocks => Some("the lengths of its records are not those of a block cipher"),
            SuiteLengths::Added { messages_fill_blocks: false, .. }
                if !of_long_blocks && self.different.len() >= LENGTHS_OF_A_BLOCK_CIPHER =>
            {
                Some("the lengths of its records are those of a block cipher")
            }
            _ => None,
        }
    }

    fn add(&mut self, length: u64) {
        if let Some(first) = self.different.first() {
            for (block, differs) in BLOCKS.into_iter().zip(&mut self.differs) {
                *differs |= length % block != first % block;
            }
        }
        if self.different.len() < LENGTHS_OF_A_BLOCK_CIPHER && !self.different.contains(&length) {
            self.different.push(length);
        }
    }
}

/// The most flows that are remembered; beyond it the oldest one is evicted.
const MAX_FLOWS: usize = 100_000;

/// Longer names of cipher suites are cut.
const MAX_NAME_CHARS: usize = 64;

/// Each flow's cipher suite, and what was reported of its session.
#[derive(Debug, Default)]
pub(crate) struct CipherSuites {
    flows: BTreeMap<u64, FlowSuite>,
    /// The flows, oldest first.
    order: VecDeque<u64>,
    pub(crate) evicted: u64,
}

#[derive(Debug, Default)]
pub(crate) struct FlowSuite {
    /// Of a session whose handshake was seen.
    pub(crate) name: Option<Box<str>>,
    /// Whether an assumption about the session was reported.
    pub(crate) is_reported: bool,
    /// Whether it was reported that the model cannot be asked of the session.
    pub(crate) is_refused: bool,
    /// Of a session whose handshake was not captured.
    pub(crate) evidence: LengthEvidence,
}

impl CipherSuites {
    /// Replaces the cipher suite of a flow when a session begins.
    pub(crate) fn update(&mut self, flow: u64, name: Option<&str>) {
        let suite = self.entry(flow);
        let is_same = suite.name.as_deref() == name;
        (suite.is_reported, suite.is_refused) = (suite.is_reported && is_same, suite.is_refused && is_same);
        suite.evidence = LengthEvidence::default();
        suite.name = name.map(|name| name.chars().take(MAX_NAME_CHARS).collect());
    }

    /// The cipher suite of a flow's session, if its handshake was seen.
    pub(crate) fn of_flow(&self, flow: u64) -> Option<&str> {
        self.flows.get(&flow)?.name.as_deref()
    }

    /// What is known of a flow, from now on if it is a new one.
    pub(crate) fn entry(&mut self, flow: u64) -> &mut FlowSuite {
        if !self.flows.contains_key(&flow) {
            if self.flows.len() >= MAX_FLOWS
                && let Some(oldest) = self.order.pop_front()
            {
                self.flows.remove(&oldest);
                self.evicted += 1;
            }
            self.order.push_back(flow);
        }
        self.flows.entry(flow).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GCM: SuiteLengths = SuiteLengths::Added { bytes: 24, messages_fill_blocks: false };

    fn command(size: u64, records: u32) -> Command {
        Command { time_ns: 0, end_ns: 0, flow: 1, size, records, ..Command::default() }
    }

    /// The first command whose session is known to use another suite, by its index.
    fn found(lengths: impl IntoIterator<Item = u64>, model: SuiteLengths) -> Option<usize> {
        let mut evidence = LengthEvidence::default();
        lengths.into_iter().position(|length| evidence.contradiction(&command(length, 1), model).is_some())
    }

    #[test]
    fn six_different_lengths_alike_modulo_a_block_show_a_block_cipher() {
        assert_eq!(found([64, 80, 64, 80, 96, 112, 64, 144, 160], GCM), Some(8));
        // Encrypt-then-MAC with SHA-1: all are 4 more than a multiple.
        assert_eq!(found((4..20).map(|blocks| blocks * 16 + 4), GCM), Some(5));
        assert_eq!(found((4..200).map(|blocks| blocks * 16 + blocks % 3), GCM), None);
        assert_eq!(found([64; 100], GCM), None, "equal lengths say nothing");
        let padded = SuiteLengths::Added { bytes: 24, messages_fill_blocks: true };
        assert_eq!(found((4..200).map(|blocks| blocks * 16), padded), None);
    }

    #[test]
    fn two_lengths_exclude_a_block_cipher() {
        assert_eq!(found([64, 80, 81], SuiteLengths::Blocks), Some(2));
        assert_eq!(found((4..200).map(|blocks| blocks * 8), SuiteLengths::Blocks), None);
    }

    #[test]
    fn records_shorter_than_what_the_suite_adds_exclude_it() {
        assert_eq!(found([23], GCM), Some(0));
        let mut evidence = LengthEvidence::default();
        assert!(evidence.contradiction(&command(47, 2), GCM).is_some());
        assert!(evidence.contradiction(&command(48, 2), GCM).is_none());
    }

    #[test]
    fn lengths_of_no_block_cipher_are_hardly_ever_taken_for_one() {
        let mut random = 1_u64;
        let mut length = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            60 + (random >> 33) % 400
        };
        let sessions = 200_000;
        let wrong = (0..sessions).filter(|_| found((0..40).map(|_| length()), GCM).is_some()).count();
        assert!(wrong <= 3, "{wrong} of {sessions}");
    }

    #[test]
    fn a_session_with_another_suite_is_reported_again() {
        let mut suites = CipherSuites::default();
        suites.entry(1).is_reported = true;
        assert!(suites.entry(1).is_reported && !suites.entry(2).is_reported);
        suites.update(1, Some("X"));
        assert_eq!((suites.of_flow(1), suites.of_flow(2)), (Some("X"), None));
        assert!(!suites.entry(1).is_reported);
        suites.entry(1).is_reported = true;
        suites.update(1, Some("X"));
        assert!(suites.entry(1).is_reported, "a reconnect with the same suite");
    }

    #[test]
    fn memory_is_bounded() {
        let mut suites = CipherSuites::default();
        for flow in 0..MAX_FLOWS as u64 + 10 {
            suites.update(flow, Some(&"é".repeat(1000)));
        }
        assert_eq!((suites.flows.len(), suites.order.len(), suites.evicted), (MAX_FLOWS, MAX_FLOWS, 10));
        assert_eq!(suites.of_flow(9), None);
        assert_eq!(suites.of_flow(10).map(|name| name.chars().count()), Some(MAX_NAME_CHARS));
    }
}
