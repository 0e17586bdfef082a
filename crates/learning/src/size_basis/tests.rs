//! Tests of the choice between plaintext and wire sizes.

use sizeleak_model::Model;

use super::*;

fn observed(size: u64, records: u32, plaintext: Option<[u64; 2]>, suite: &str) -> ObservedCommand {
    let command = Command { time_ns: 0, end_ns: 0, flow: 1, size, plaintext, records, ..Command::default() };
    let cipher_suite = plaintext.map(|_| suite.to_owned());
    ObservedCommand { command, cipher_suite, service: None }
}

fn plaintext(suite: &str, record_overhead: [u32; 2]) -> Basis {
    Basis::Plaintext { cipher_suite: suite.to_owned(), record_overhead }
}

fn assumed() -> CipherSuite {
    CipherSuite { name: "T".into(), record_overhead: [17, 17] }
}

#[test]
fn most_frequent_suite_is_the_basis() {
    let commands = [
        observed(124, 1, Some([100; 2]), "B"),
        observed(117, 1, Some([100; 2]), "A"),
        observed(248, 2, Some([200; 2]), "B"),
    ];
    let chosen = choose_basis(&commands, None);
    assert_eq!((&chosen.basis, chosen.remarks.len()), (&plaintext("B", [24, 24]), 0));
    assert_eq!(commands.map(|observed| sizes(&chosen.basis, &observed.command)), [[100; 2], [100; 2], [200; 2]]);
}

#[test]
fn sessions_without_a_handshake_get_the_assumed_or_the_most_frequent_suite() {
    let commands = [observed(124, 1, Some([100; 2]), "B"), observed(234, 2, None, "")];
    let chosen = choose_basis(&commands, None);
    assert_eq!(chosen.basis, plaintext("B", [24, 24]));
    assert!(chosen.remarks[0].starts_with("1 of 2 commands") && chosen.remarks[0].ends_with("be B"), "{chosen:?}");
    assert_eq!(sizes(&chosen.basis, &commands[1].command), [186; 2]);
    let chosen = choose_basis(&commands, Some(assumed()));
    assert_eq!(chosen.basis, plaintext("T", [17, 17]));
    assert_eq!(sizes(&chosen.basis, &commands[1].command), [200; 2]);
    assert!(choose_basis(&commands[..1], Some(assumed())).remarks[0].contains("`--cipher T` was not needed"));
}

#[test]
fn sizes_are_those_on_the_wire_without_any_suite() {
    let commands = [observed(124, 1, None, ""), observed(234, 2, None, "")];
    let chosen = choose_basis(&commands, None);
    assert_eq!((&chosen.basis, sizes(&chosen.basis, &commands[1].command)), (&Basis::Wire, [234; 2]));
    assert!(chosen.remarks[0].contains("--cipher"), "{chosen:?}");
    assert_eq!(choose_basis(&commands, Some(assumed())).basis, plaintext("T", [17, 17]));
}

#[test]
fn block_cipher_sizes_are_ranges() {
    let commands = [observed(160, 1, Some([108, 123]), "CBC")];
    let chosen = choose_basis(&commands, None);
    assert_eq!(chosen.basis, plaintext("CBC", [37, 52]));
    assert_eq!(sizes(&chosen.basis, &commands[0].command), [108, 123]);
    assert!(chosen.remarks[0].contains("from ranges"), "{chosen:?}");
}

#[test]
fn blocks_end_where_those_of_most_single_records_do() {
    // SHA-1 behind the encryption (RFC 7366): 16 + 112 + 20 bytes hold 96 to 111; another one is of two records.
    let mut commands = vec![
        observed(148, 1, Some([96, 111]), "CBC"),
        observed(164, 1, Some([112, 127]), "CBC"),
        observed(312, 2, Some([208, 238]), "CBC"),
    ];
    let rest = |commands: &[ObservedCommand], padding| {
        let ChosenBasis { basis, .. } = choose_basis(commands, Some(CipherSuite::named(SUITE).unwrap()));
        let model = Model::from_toml(include_str!("../../../../examples/home/model.toml")).unwrap();
        let mut learned = Provenance { basis, padding, ..model.learned };
        learned.observe_blocks(greatest_in_blocks(&learned, commands));
        learned.block_rest
    };
    assert_eq!(rest(&commands, None), Some(15));
    // The same where no handshake is seen and the suite is named.
    for observed in &mut commands {
        observed.command.plaintext = None;
    }
    assert_eq!(rest(&commands, None), Some(15));
    // MAC and plaintext encrypted together: all are multiples of 16.
    let encrypted = [observed(144, 1, None, ""), observed(160, 1, None, "")];
    assert_eq!(rest(&encrypted, None), None);
    let padded = [observed(99, 1, Some([75; 2]), "A"), observed(131, 1, Some([107; 2]), "A")];
    assert_eq!(rest(&padded, Some(LearnedPadding::Modulo(16))), Some(11));
    assert_eq!(rest(&padded, None), None);
}

const SUITE: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA";
