//! Datagrams that somebody has forged, or that are odd, among those of a conversation.

use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{Keys, Version};
use rustls::{Side, SupportedCipherSuite};

use super::segments::{FOURTH, FROM_GATEWAY, IS_UDP, Row, SECOND, THIRD};

/// A connection of QUIC, another one whose two `Initial`s are forged, data of both with the fixed bit and without, a
/// version that is not read, and empty pieces of a hello.
pub(super) fn quic() -> Vec<Row> {
    let [genuine, forged] = [(*b"original", *b"client-1"), (*b"forged-1", *b"other-id")];
    let hello = [&[1, 0, 0, 45, 3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0, 0, 2, 0, 0]].concat();
    let answer = [&[2, 0, 0, 46, 3, 3][..], &[9; 32], &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat();
    let row = |direction: u16, payload: Vec<u8>| Row::new(IS_UDP | SECOND | direction, payload);
    let initials = |(original, client): ([u8; 8], [u8; 8]), frames: &[u8]| {
        let server = initial(Side::Server, &original, [&client, b"server-1"], &crypto(0, &answer));
        [row(FROM_GATEWAY, initial(Side::Client, &original, [&original, &client], frames)), row(0, server)]
    };
    let short = |first: u8, id: &[u8]| [&[first][..], id, &[first; 40]].concat();
    let data = [0x41, 0x02, 0x43]
        .map(|first| [row(0, short(first, b"client-1")), row(FROM_GATEWAY, short(first, b"server-1"))]);
    let unread = [&[0xc3, 0x1a, 0x2a, 0x3a, 0x4a, 1, 5, 1, 6][..], &[9; 60]].concat();
    let empty: Vec<u8> = (0..40).flat_map(|at| crypto(at * 9, &[])).collect();
    let rows = [
        initials(genuine, &crypto(0, &hello)).to_vec(),
        data.concat(),
        initials(forged, &[crypto(20, &hello[20..]), crypto(0, &hello[..20])].concat()).to_vec(),
        vec![row(0, short(0x44, b"other-id")), row(0, short(0x15, b"client-1")), row(FROM_GATEWAY, unread)],
        vec![
            row(FROM_GATEWAY, initial(Side::Client, b"original", [b"original", b"client-1"], &empty)),
            row(0, vec![0xff]),
        ],
    ];
    rows.concat()
}

/// A packet with these ids and frames, with the keys that anybody can make.
fn initial(from: Side, original: &[u8], [destination, source]: [&[u8]; 2], frames: &[u8]) -> Vec<u8> {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else { unreachable!() };
    let keys = Keys::initial(Version::V1, suite, suite.quic.unwrap(), original, from).local;
    let body = (0x4000 | (frames.len() + 2 + 16) as u16).to_be_bytes();
    let mut packet = [&[0xc1, 0, 0, 0, 1, 8][..], destination, &[8], source, &[0], &body].concat();
    let header = packet.len();
    packet.extend([0, 3]);
    let mut payload = frames.to_vec();
    let tag = keys.packet.encrypt_in_place(3, &packet, &mut payload).unwrap();
    packet.extend([&payload, tag.as_ref()].concat());
    let sample = packet[header + 4..header + 20].to_vec();
    let (head, number) = packet.split_at_mut(header);
    keys.header.encrypt_in_place(&sample, &mut head[0], &mut number[..2]).unwrap();
    packet
}

fn crypto(offset: u16, data: &[u8]) -> Vec<u8> {
    let [offset, length] = [offset, data.len() as u16].map(|number| (0x4000 | number).to_be_bytes());
    [&[6][..], &offset, &length, data].concat()
}

/// A handshake and data, a record of another epoch, of a far number, and two hellos of another session.
pub(super) fn dtls() -> Vec<Row> {
    let record = |kind: u8, epoch: u8, number: [u8; 2], body: &[u8]| {
        [&[kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0][..], &number, &(body.len() as u16).to_be_bytes(), body].concat()
    };
    let hello = |kind: u8, random: u8, more: &[u8]| {
        let body = [&[0xfe, 0xfd][..], &[random; 32], more].concat();
        let length = [0, 0, body.len() as u8];
        record(22, 0, [0, 0], &[&[kind][..], &length, &[0; 5], &length, &body].concat())
    };
    let hellos = |random: u8, suite: u8| {
        let client = hello(1, random, &[0, 0, 0, 4, 0xc0, 0xae, 0xc0, 0x2b, 1, 0]);
        [Row::new(IS_UDP | FROM_GATEWAY, client), Row::new(IS_UDP, hello(2, random, &[0, 0xc0, suite, 0, 0, 0]))]
    };
    let data = |epoch: u8, number: [u8; 2], bytes: usize| {
        [FROM_GATEWAY, 0].map(|direction| Row::new(IS_UDP | direction, record(23, epoch, number, &vec![8; bytes])))
    };
    let finished = [FROM_GATEWAY, 0].map(|direction| Row::new(IS_UDP | direction, record(22, 1, [0, 0], &[8; 48])));
    let rows = [hellos(1, 0x2b), finished, data(1, [0, 1], 60), data(2, [0, 0], 33), data(1, [0xff, 0], 40)];
    [rows.concat(), hellos(2, 0xae).to_vec(), data(1, [0, 2], 61).to_vec(), data(1, [0, 0], 40).to_vec()].concat()
}

/// On the port of each protocol a byte, datagrams that begin as those of others do, and then its own.
pub(super) fn first_datagrams() -> Vec<Row> {
    let dtls = [&[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 40][..], &[1; 40]].concat();
    let wireguard = [&[1, 0, 0, 0][..], &[5; 144]].concat();
    let quic = [&[0xe3, 0, 0, 0, 1, 1, 5, 1, 6, 0x40, 60][..], &[5; 60]].concat();
    let own = [
        dtls.clone(),
        [&[0x41][..], &[6; 60]].concat(),
        [&[0, 77, 0, 0, 2, 0, 0, 0][..], &[7; 40]].concat(),
        [&[1, 2, 3, 4, 0, 0, 0, 1][..], &[9; 60]].concat(),
    ];
    let rows = [0, SECOND, THIRD, FOURTH].into_iter().zip(own).flat_map(|(flow, own)| {
        let odd =
            [vec![0], dtls.clone(), wireguard.clone(), quic.clone(), vec![0x2f, 1, 2, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9]];
        let rows = odd.into_iter().chain([own.clone(), own]).zip([0, FROM_GATEWAY].into_iter().cycle());
        rows.map(move |(payload, direction)| Row::new(IS_UDP | flow | direction, payload)).collect::<Vec<_>>()
    });
    rows.collect()
}
