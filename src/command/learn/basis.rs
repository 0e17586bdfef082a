//! What the sizes of a model are: plaintext where the captures let it be known, else lengths on the wire.

use std::collections::BTreeMap;

use anyhow::bail;
use sizeleak_frame::Command;
use sizeleak_model::{Basis, WireSize};
use sizeleak_record_sizer::record_overhead;

/// A command with what was seen of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) command: Command,
    /// The session's cipher suite, where its handshake was seen.
    pub(super) cipher_suite: Option<String>,
}

/// A cipher suite and the least and the most bytes it adds to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cipher {
    pub(super) name: String,
    pub(super) record_overhead: [u32; 2],
}

impl Cipher {
    /// A suite by its IANA name.
    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        let Some(record_overhead) = record_overhead(name) else {
            bail!(
                "`{name}` is no cipher suite whose sizes are known: use its IANA name, such as \
                 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
            );
        };
        Ok(Self { name: name.to_owned(), record_overhead })
    }
}

/// A basis, and what a person should know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) basis: Basis,
    pub(super) remarks: Vec<String>,
}

/// Chooses the basis for these commands. `assumed` is the suite of sessions whose handshake is not in the captures.
///
/// Sizes are plaintext as soon as one session's suite is known, or is told by `assumed`: what the suite adds to a record
/// is then subtracted for the sessions seen from the middle only. Where nothing is known they are sizes on the wire.
pub(super) fn choose(commands: &[Observed], assumed: Option<Cipher>) -> Chosen {
    let mut remarks = Vec::new();
    let unseen = commands.iter().filter(|observed| observed.command.plaintext.is_none()).count();
    let usual = usual_cipher(commands);
    if unseen == 0
        && let Some(cipher) = &assumed
    {
        remarks.push(format!("`--cipher {}` was not needed: all sessions show their own cipher suite", cipher.name));
    }
    let assumed = assumed.filter(|_| unseen > 0);
    let Some(cipher) = assumed.or(usual) else {
        remarks.push(
            "no session shows its cipher suite: sizes are learned as they are on the wire, and hold for this unknown suite \
             alone; capture a handshake (restart the gateway), or name the suite by `--cipher`"
                .to_owned(),
        );
        return Chosen { basis: Basis::Wire, remarks };
    };
    if unseen > 0 {
        let (all, name) = (commands.len(), &cipher.name);
        remarks.push(format!(
            "{unseen} of {all} commands come in sessions that do not show what their suite adds: taken to use {name}"
        ));
    }
    let ranges = commands.iter().filter(|observed| is_range(&observed.command)).count();
    let [least, most] = cipher.record_overhead;
    if ranges > 0 || (unseen > 0 && least < most) {
        remarks.push(
            "a block cipher hides sizes within a block: sizes are learned from ranges, and may be off by a few bytes"
                .to_owned(),
        );
    }
    let Cipher { name: cipher_suite, record_overhead } = cipher;
    Chosen { basis: Basis::Plaintext { cipher_suite, record_overhead }, remarks }
}

/// The least and the most that a command's size may be in a basis.
pub(super) fn sizes(basis: &Basis, command: &Command) -> [i64; 2] {
    // A wire basis is chosen only where no command has a plaintext size, and takes them all.
    basis.sizes(command.size, command.records, command.plaintext).unwrap_or([i64::MAX; 2])
}

/// The bytes of the replies to a command, in a basis.
pub(super) fn reply_bytes(basis: &Basis, command: &Command) -> i64 {
    let size = WireSize { wire: command.size, records: command.records, plaintext: command.plaintext };
    basis.reply_bytes(command.reply_bytes, command.replies, size)
}

/// The suite that most commands came under, the first by name of several, with what it adds to a record.
fn usual_cipher(commands: &[Observed]) -> Option<Cipher> {
    let mut suites: BTreeMap<&str, (u64, [u32; 2])> = BTreeMap::new();
    for observed in commands {
        let overhead = added_to_records(&observed.command);
        if let (Some(suite), Some([least, most])) = (&observed.cipher_suite, overhead) {
            let (times, range) = suites.entry(suite).or_insert((0, [least, most]));
            *times += 1;
            *range = [range[0].min(least), range[1].max(most)];
        }
    }
    let most = suites.values().map(|(times, _)| *times).max()?;
    let (name, (_, record_overhead)) = suites.into_iter().find(|(_, (times, _))| *times == most)?;
    Some(Cipher { name: name.to_owned(), record_overhead })
}

/// The least and the most bytes that were added to each of a command's records.
fn added_to_records(command: &Command) -> Option<[u32; 2]> {
    let [least, most] = command.plaintext?;
    let records = u64::from(command.records.max(1));
    let least_added = command.size.saturating_sub(most) / records;
    let most_added = command.size.saturating_sub(least).div_ceil(records);
    Some([u32::try_from(least_added).ok()?, u32::try_from(most_added).ok()?])
}

fn is_range(command: &Command) -> bool {
    command.plaintext.is_some_and(|[least, most]| least < most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(size: u64, records: u32, plaintext: Option<[u64; 2]>, suite: &str) -> Observed {
        let command = Command { time_ns: 0, end_ns: 0, flow: 1, size, plaintext, records, replies: 0, reply_bytes: 0 };
        let cipher_suite = plaintext.map(|_| suite.to_owned());
        Observed { command, cipher_suite }
    }

    fn plaintext(suite: &str, record_overhead: [u32; 2]) -> Basis {
        Basis::Plaintext { cipher_suite: suite.to_owned(), record_overhead }
    }

    fn told() -> Cipher {
        Cipher { name: "T".into(), record_overhead: [17, 17] }
    }

    #[test]
    fn the_suite_most_commands_came_under_is_carried() {
        let commands = [
            observed(124, 1, Some([100; 2]), "B"),
            observed(117, 1, Some([100; 2]), "A"),
            observed(248, 2, Some([200; 2]), "B"),
        ];
        let chosen = choose(&commands, None);
        assert_eq!((&chosen.basis, chosen.remarks.len()), (&plaintext("B", [24, 24]), 0));
        assert_eq!(commands.map(|observed| sizes(&chosen.basis, &observed.command)), [[100; 2], [100; 2], [200; 2]]);
    }

    #[test]
    fn sessions_seen_from_the_middle_take_the_usual_suite_or_the_one_told() {
        let commands = [observed(124, 1, Some([100; 2]), "B"), observed(234, 2, None, "")];
        let chosen = choose(&commands, None);
        assert_eq!(chosen.basis, plaintext("B", [24, 24]));
        assert!(chosen.remarks[0].starts_with("1 of 2 commands") && chosen.remarks[0].ends_with("use B"), "{chosen:?}");
        assert_eq!(sizes(&chosen.basis, &commands[1].command), [186; 2]);
        let chosen = choose(&commands, Some(told()));
        assert_eq!(chosen.basis, plaintext("T", [17, 17]));
        assert_eq!(sizes(&chosen.basis, &commands[1].command), [200; 2]);
        assert!(choose(&commands[..1], Some(told())).remarks[0].contains("`--cipher T` was not needed"));
    }

    #[test]
    fn without_any_suite_sizes_are_those_on_the_wire() {
        let commands = [observed(124, 1, None, ""), observed(234, 2, None, "")];
        let chosen = choose(&commands, None);
        assert_eq!((&chosen.basis, sizes(&chosen.basis, &commands[1].command)), (&Basis::Wire, [234; 2]));
        assert!(chosen.remarks[0].contains("--cipher"), "{chosen:?}");
        assert_eq!(choose(&commands, Some(told())).basis, plaintext("T", [17, 17]));
    }

    #[test]
    fn a_range_of_sizes_is_learned_from() {
        let commands = [observed(160, 1, Some([108, 123]), "CBC")];
        let chosen = choose(&commands, None);
        assert_eq!(chosen.basis, plaintext("CBC", [37, 52]));
        assert_eq!(sizes(&chosen.basis, &commands[0].command), [108, 123]);
        assert!(chosen.remarks[0].contains("from ranges"), "{chosen:?}");
    }
}
