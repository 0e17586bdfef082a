//! Tests of `handshake`.

use super::*;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 0, (body.len() >> 8) as u8, body.len() as u8], body].concat()
}

fn server(random: &[u8; 32], extensions: &[u8]) -> Vec<u8> {
    let length = [0, extensions.len() as u8];
    message(2, &[&[3, 3], random.as_slice(), &[0, 0x13, 0x01, 0], &length, extensions].concat())
}

fn client(extensions: &[u8]) -> Vec<u8> {
    let length = [0, extensions.len() as u8];
    message(1, &[&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 0x01, 1, 0], &length, extensions].concat())
}

fn hellos(reader: &mut HandshakeReader, body: &[u8], step: usize) -> Vec<Hello> {
    let mut found = Vec::new();
    for bytes in body.chunks(step) {
        reader.bytes(bytes, |hello| found.push(hello), |_, _| ());
    }
    found
}

const NAME: [u8; 16] = *b"\0\0\0\x0c\0\x0a\0\0\x07hub.iot";
const VERSION: [u8; 6] = [0, 43, 0, 2, 3, 4];

#[test]
fn hellos_are_found_among_other_messages_and_in_fragments() {
    let early_data = [0, 42, 0, 0];
    let all = [client(&[&NAME[..], &early_data].concat()), message(11, &[1; 300]), server(&[9; 32], &VERSION)].concat();
    for step in [1, 3, 50, 1000] {
        let found = hellos(&mut HandshakeReader::default(), &all, step);
        let [Hello::Client(client), Hello::Server(server)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((client.server_name.as_deref(), client.early_data), (Some("hub.iot"), true));
        assert_eq!((server.version, server.cipher_suite, server.retry), (0x0304, 0x1301, false));
    }
}

#[test]
fn retry_and_encrypt_then_mac_are_recognised() {
    let found = hellos(&mut HandshakeReader::default(), &server(&RETRY, &[0, 22, 0, 0]), 99);
    let [Hello::Server(hello)] = &found[..] else { panic!("{found:?}") };
    assert!(hello.retry && hello.encrypt_then_mac && hello.version == 0x0303);
}

#[test]
fn reader_is_in_step_again_after_the_record_with_ciphertext() {
    let mut reader = HandshakeReader::default();
    assert!(hellos(&mut reader, &[0x9f; 40], 40).is_empty());
    assert!(hellos(&mut reader, &client(&[]), 99).is_empty());
    reader.end_of_record();
    assert_eq!(hellos(&mut reader, &client(&[]), 99).len(), 1);
    reader.bytes(&client(&NAME)[..20], |_| panic!(), |_, _| ());
    assert!(reader.held_bytes() > 0);
    assert_eq!(reader.bytes_lost(), None);
    assert_eq!(reader.held_bytes(), 0);
}

#[test]
fn the_seen_part_of_a_clients_hello_counts() {
    let whole = client(&[&NAME[..], &[0, 42, 0, 0], &[0, 51, 0, 90], &[5; 90]].concat());
    let seen = |bytes: usize| {
        let mut reader = HandshakeReader::default();
        reader.bytes(&whole[..bytes], |_| panic!("incomplete"), |_, _| ());
        let Some(Hello::Client(hello)) = reader.bytes_lost() else { return None };
        Some((hello.server_name.unwrap().into_string(), hello.early_data))
    };
    let name_ends = 4 + 2 + 32 + 7 + 2 + NAME.len();
    assert_eq!(seen(name_ends - 1), None, "half a name is none");
    assert_eq!(seen(name_ends), Some(("hub.iot".to_owned(), false)));
    assert_eq!(seen(name_ends + 40), Some(("hub.iot".to_owned(), true)));
    let mut reader = HandshakeReader::default();
    reader.bytes(&server(&[9; 32], &VERSION)[..40], |_| panic!("incomplete"), |_, _| ());
    assert_eq!(reader.bytes_lost(), None, "its version comes last");
}

#[test]
fn invalid_server_names_are_ignored() {
    assert_eq!(server_name(b"a\nb"), None);
    assert_eq!(server_name(&[b'a'; 256]), None);
    assert_eq!(server_name(b""), None);
}
