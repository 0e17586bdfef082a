//! QUIC with packets that others have forged: the keys of the first packets are public.

use rustls::Side;
use rustls::SupportedCipherSuite;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{Keys, Version};
use sizeleak_frame::ContentType;

use super::*;

/// Bytes of a packet number in what is made here, and of a tag.
const ADDED: usize = 2 + 16;

/// The ids of a connection's ends, and its client's name for the server.
struct Ends {
    original: Vec<u8>,
    client: Vec<u8>,
    server: Vec<u8>,
    name: &'static str,
    /// Whether the server clears the fixed bit (RFC 9287).
    clears: bool,
}

impl Ends {
    fn new([client, server]: [usize; 2], name: &'static str, seed: u64) -> Self {
        let mut noise = Noise(seed);
        Self { original: noise.bytes(8), client: noise.bytes(client), server: noise.bytes(server), name, clears: false }
    }

    fn ids(&self, from: Side) -> [&[u8]; 2] {
        match from {
            Side::Client => [&self.server, &self.client],
            Side::Server => [&self.client, &self.server],
        }
    }

    /// The start of a packet with a long header, up to its length.
    fn long(&self, first: u8, [destination, source]: [&[u8]; 2], token: &[u8], body: usize) -> Vec<u8> {
        let first = if self.clears { first & !0x40 } else { first };
        let (lengths, body) = ([destination.len() as u8, source.len() as u8], (0x4000 | body as u16).to_be_bytes());
        [&[first, 0, 0, 0, 1, lengths[0]][..], destination, &lengths[1..], source, token, &body].concat()
    }

    fn initial(&self, from: Side, ids: [&[u8]; 2], frames: &[u8]) -> Vec<u8> {
        let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else { unreachable!() };
        let keys = Keys::initial(Version::V1, suite, suite.quic.unwrap(), &self.original, from).local;
        let mut packet = self.long(0xc1, ids, &[0], frames.len() + ADDED);
        let header = packet.len();
        packet.extend([0, 7]);
        let mut payload = frames.to_vec();
        let tag = keys.packet.encrypt_in_place(7, &packet, &mut payload).unwrap();
        packet.extend(payload);
        packet.extend(tag.as_ref());
        let sample = packet[header + 4..header + 20].to_vec();
        let (head, rest) = packet.split_at_mut(header);
        keys.header.encrypt_in_place(&sample, &mut head[0], &mut rest[..2]).unwrap();
        packet
    }

    fn client_initial(&self) -> Vec<u8> {
        self.initial(Side::Client, [&self.original, &self.client], &crypto(0, &client_hello(self.name)))
    }

    fn server_initial(&self) -> Vec<u8> {
        self.initial(Side::Server, self.ids(Side::Server), &crypto(0, &server_hello()))
    }

    fn handshake(&self, from: Side, noise: &mut Noise) -> Vec<u8> {
        [self.long(0xe0, self.ids(from), &[], 90), noise.bytes(90)].concat()
    }

    fn short(&self, from: Side, plaintext: usize, noise: &mut Noise) -> Vec<u8> {
        let first = noise.below(0x40) as u8 | if self.clears && noise.below(2) == 0 { 0 } else { 0x40 };
        [&[first][..], self.ids(from)[0], &noise.bytes(plaintext + ADDED)].concat()
    }

    /// A handshake and forty packets of data, the gateway being the client.
    fn conversation(&self, noise: &mut Noise) -> Vec<Row> {
        let server = [self.server_initial(), self.handshake(Side::Server, noise)].concat();
        let client =
            [self.initial(Side::Client, self.ids(Side::Client), &[0; 40]), self.handshake(Side::Client, noise)];
        let mut datagrams = vec![(FROM, self.client_initial()), (TO, server), (FROM, client.concat())];
        for at in 0..40 {
            let (direction, from) = if at % 2 == 0 { (TO, Side::Server) } else { (FROM, Side::Client) };
            datagrams.push((direction, self.short(from, 30 + at * 3, noise)));
        }
        timed(datagrams)
    }
}

fn crypto(offset: u16, data: &[u8]) -> Vec<u8> {
    let [offset, length] = [offset, data.len() as u16].map(|number| (0x4000 | number).to_be_bytes());
    [&[6][..], &offset, &length, data].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 0][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

fn client_hello(name: &str) -> Vec<u8> {
    let length = |bytes: usize| (bytes as u16).to_be_bytes();
    let name =
        [&[0, 0][..], &length(name.len() + 5), &length(name.len() + 3), &[0], &length(name.len()), name.as_bytes()];
    let name = name.concat();
    message(1, &[&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &length(name.len()), &name].concat())
}

fn server_hello() -> Vec<u8> {
    message(2, &[&[3, 3][..], &[9; 32], &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat())
}

/// The plaintext of data in a row, as it was made.
fn data(ends: &Ends, (_, direction, payload): &Row) -> u64 {
    let id = if *direction == TO { &ends.client } else { &ends.server };
    (payload.len() - 1 - id.len() - ADDED) as u64
}

/// What somebody may send who sees the conversation between these ends: datagrams that come together.
fn forged(ends: &Ends) -> Vec<Vec<(Direction, Vec<u8>)>> {
    let mut noise = Noise(77);
    let other = |ids, seed| Ends::new(ids, "evil.example", seed);
    let (five, none) = (other([5, 5], 5), other([0, 0], 6));
    let initials = |ends: &Ends| vec![(FROM, ends.client_initial()), (TO, ends.server_initial())];
    let backwards = vec![(TO, five.client_initial()), (FROM, five.server_initial())];
    let with_data = |ends: &Ends, noise: &mut Noise| {
        let data = [(TO, ends.short(Side::Server, 50, noise)), (FROM, ends.short(Side::Client, 50, noise))];
        [initials(ends), data.to_vec()].concat()
    };
    let [forged_five, forged_none] = [&five, &none].map(|ends| with_data(ends, &mut noise));
    // In the connection's own keys, with another id, or with its ids and another one in a packet that cannot be checked.
    let in_its_keys = ends.initial(Side::Server, [&ends.client, &[3; 3]], &[0; 40]);
    let unchecked = [ends.long(0xe0, [&ends.client, &[4; 12]], &[], 60), vec![9; 60]].concat();
    let to_it = [ends.long(0xe0, [&[4; 12], &ends.client], &[], 60), vec![9; 60]].concat();
    let unread = [&[0xc3, 0xfa, 0xce, 0xb0, 2, 4, 1, 2, 3, 4, 2, 5, 6][..], &[9; 1200]].concat();
    vec![
        vec![(FROM, five.client_initial())],
        vec![(FROM, none.client_initial())],
        vec![(TO, none.client_initial())],
        (10..18).map(|seed| (FROM, other([6, 6], seed).client_initial())).collect(),
        initials(&five),
        initials(&none),
        backwards,
        forged_five,
        forged_none,
        vec![(TO, in_its_keys)],
        vec![(TO, unchecked), (FROM, to_it)],
        vec![(TO, [&[0xc3, 0, 0, 0, 0, 1, 1, 1, 2][..], &[1; 8]].concat())],
        vec![(FROM, unread)],
        vec![(TO, vec![0xff])],
        vec![(TO, [&[0x41][..], &noise.bytes(60)].concat()), (FROM, [&[0x41][..], &noise.bytes(60)].concat())],
    ]
}

const KINDS: [[usize; 2]; 6] = [[8, 8], [0, 8], [8, 0], [0, 0], [20, 4], [18, 1]];

#[test]
fn forged_packets_change_no_size_of_others() {
    for ids in KINDS {
        for clears in [false, true] {
            let ends = Ends { clears, ..Ends::new(ids, "hub.example", 1) };
            let rows = ends.conversation(&mut Noise(2));
            let (frames, lost) = found(&Options::default(), [40_000, 443], &rows);
            let clean = own(&frames);
            assert_eq!((clean.len(), lost), (45, 0), "{ids:?} {clears}");
            for (record, row) in clean[5..].iter().zip(&rows[3..]) {
                let plaintext = data(&ends, row);
                assert_eq!(record.plaintext, Some([plaintext - 2, plaintext + 1]), "{ids:?} {clears} {record:?}");
            }
            assert_eq!(sessions(&frames).len(), 1);
            for (kind, forged) in forged(&ends).into_iter().enumerate() {
                for at in [0, 1, 2, 3, 5, 20, 42] {
                    let (frames, _) = found(&Options::default(), [40_000, 443], &with(&rows, at, &forged));
                    let mut own = own(&frames);
                    // Without ids, data may as well be of the connection whose data was forged.
                    if kind == 14 && ids[0] == 0 || kind == 8 && ids == [0, 0] {
                        for (own, clean) in own.iter_mut().zip(&clean) {
                            let [[least, most], exact] = [own.plaintext, clean.plaintext].map(Option::unwrap);
                            assert!(least <= exact[0] && exact[1] <= most, "{ids:?} {clears}: {kind} at {at}: {own:?}");
                            own.clone_from(clean);
                        }
                    }
                    let differs = own.iter().zip(&clean).find(|(own, clean)| own != clean);
                    assert!(
                        own.len() == clean.len() && differs.is_none(),
                        "{ids:?} {clears}: forged {kind} at {at}: {differs:?}"
                    );
                    let session = sessions(&frames).pop().unwrap();
                    assert!(
                        ids == [0, 0] || session.0.is_none_or(|name| name == "hub.example"),
                        "{ids:?} {clears}: forged {kind} at {at}"
                    );
                }
            }
        }
    }
}

#[test]
fn packets_without_their_handshake_are_sized_by_port_whatever_is_forged() {
    for ids in KINDS {
        let ends = Ends::new(ids, "hub.example", 1);
        let rows = &ends.conversation(&mut Noise(2))[3..];
        let (frames, lost) = found(&Options::default(), [40_000, 443], rows);
        assert_eq!((records(&frames).len(), lost), (40, 0));
        assert_eq!(notices(&frames, "assumed"), ["QUIC by its port, since its handshake is not in the capture"]);
        assert!(records(&found(&Options::default(), [40_000, 9000], rows).0).is_empty(), "on another port");
        let declared = Options { quic_port: vec![9000], ..Options::default() };
        assert_eq!(records(&found(&declared, [40_000, 9000], rows).0).len(), 40);
        for (kind, forged) in forged(&ends).into_iter().enumerate() {
            // An empty id is all that is known of some, and a client's is in what it sends alone.
            for at in [0, 1, 2, 9, 20] {
                let (frames, _) = found(&Options::default(), [40_000, 443], &with(rows, at, &forged));
                let found = own(&frames);
                assert_eq!(found.len(), 40, "{ids:?}: forged {kind} at {at}");
                for (record, row) in found.iter().zip(rows).skip(if at < 3 && forged.len() > 1 { 20 } else { 0 }) {
                    let ([least, most], plaintext) = (record.plaintext.unwrap(), data(&ends, row));
                    let is_right = least <= plaintext && plaintext <= most;
                    assert!(is_right, "{ids:?}: forged {kind} at {at}: {plaintext} of {record:?}");
                }
                let widths =
                    found[38..].iter().map(|record| record.plaintext.unwrap()).map(|[least, most]| most - least);
                assert_eq!(widths.collect::<Vec<_>>(), [3, 3], "{ids:?}: forged {kind} at {at}");
            }
        }
    }
}

#[test]
fn another_connection_on_the_same_ports_has_its_own_ids_and_session() {
    let (one, other) = (Ends::new([8, 8], "one.example", 1), Ends::new([0, 12], "other.example", 2));
    let datagrams = |ends: &Ends| ends.conversation(&mut Noise(3)).into_iter().map(|(_, way, payload)| (way, payload));
    let rows = timed(datagrams(&one).chain(datagrams(&other)).collect::<Vec<_>>());
    let (frames, lost) = found(&Options::default(), [40_000, 9000], &rows);
    let names: Vec<_> = sessions(&frames).into_iter().map(|(name, ..)| name.unwrap()).collect();
    assert_eq!((names, lost), (vec!["one.example".to_owned(), "other.example".to_owned()], 0));
    let found = records(&frames);
    assert_eq!(found.len(), 90);
    // Before its client has sent data, one packet of the server is sized as the connection before.
    for (record, row) in found[51..].iter().zip(&rows[47..]) {
        let plaintext = data(&other, row);
        assert_eq!(record.plaintext, Some([plaintext - 2, plaintext + 1]));
    }
}

#[test]
fn ids_of_a_known_connection_need_no_fixed_bit_on_other_ports() {
    let ends = Ends { clears: true, ..Ends::new([8, 8], "hub.example", 1) };
    let rows = ends.conversation(&mut Noise(2));
    let (mut sizer, mut out) = (RecordSizer::new(&Options::default()).unwrap(), Vec::new());
    for (at, (time_ns, direction, payload)) in rows.iter().enumerate() {
        let mut batch = Segments::new();
        let (flow, length) = (if at < 10 { 1 } else { 2 }, payload.len() as u32);
        let (time_ns, direction) = (*time_ns, *direction);
        batch.push(Segment { time_ns, flow, direction, sequence: 0, flags: 0, length, payload, acknowledgement: None });
        sizer.process(batch.into(), &mut out).unwrap();
    }
    sizer.finish(&mut out).unwrap();
    assert_eq!(records(&out).len(), 45);
    assert_eq!(sizer.reporter.counters.lost_bytes, 0);
}

#[test]
fn versions_that_are_not_read_are_named_and_their_packets_are_lost() {
    let rows = Ends::new([8, 8], "hub.example", 1).conversation(&mut Noise(2));
    let with_version = |version: [u8; 4]| {
        let mut rows = rows.clone();
        for (_, _, payload) in rows.iter_mut().filter(|(_, _, payload)| payload[0] & 0x80 != 0) {
            payload[1..5].copy_from_slice(&version);
        }
        rows
    };
    for (version, port, name) in [
        (*b"T051", 9000, "0x54303531 (T051)"),
        ([0xfa, 0xce, 0xb0, 2], 443, "0xfaceb002 (mvfst)"),
        ([0xab, 0xcd, 0, 1], 443, "0xabcd0001"),
    ] {
        let rows = with_version(version);
        let (frames, lost) = found(&Options::default(), [40_000, port], &rows);
        assert!(records(&frames).is_empty(), "{name}");
        let said = format!("QUIC of version {name}, which is not read: such packets are not sized");
        assert_eq!(notices(&frames, "unsupported"), [said]);
        assert_eq!(lost, rows.iter().map(|(_, _, payload)| payload.len() as u64).sum::<u64>());
        assert_eq!(notices(&frames, "loss").len(), 1);
    }
    // A client that offers a reserved version at first, and is told others.
    let mut reserved = rows[0].2.clone();
    reserved[1..5].copy_from_slice(&[0x1a, 0x2a, 0x3a, 0x4a]);
    let negotiation = [&[0x80, 0, 0, 0, 0][..], &reserved[14..23], &reserved[5..14], &[0, 0, 0, 1]].concat();
    let rows = with(&rows, 0, &[(FROM, reserved.clone()), (TO, negotiation)]);
    let (frames, lost) = found(&Options::default(), [40_000, 443], &rows);
    assert_eq!((own(&frames).len(), lost), (45, reserved.len() as u64));
    assert_eq!(notices(&frames, "unsupported").len(), 1);
}

#[test]
fn empty_pieces_of_a_hello_cost_nothing_and_partial_hellos_are_bounded() {
    let ends = Ends::new([8, 8], "hub.example", 1);
    let ids = [&ends.original[..], &ends.client];
    let pieces: Vec<u8> = (0..300_u16).flat_map(|offset| crypto(1000 + offset * 7, &[])).collect();
    let rows = timed((0..20).map(|_| (FROM, ends.initial(Side::Client, ids, &pieces))).collect::<Vec<_>>());
    let mut sizer = RecordSizer::new(&Options::default()).unwrap();
    let send = |sizer: &mut RecordSizer, flow, payload: &[u8]| {
        let mut batch = Segments::new();
        let length = payload.len() as u32;
        batch.push(Segment {
            time_ns: 1,
            flow,
            direction: FROM,
            sequence: 0,
            flags: 0,
            length,
            payload,
            acknowledgement: None,
        });
        let mut out = Vec::new();
        sizer.process(batch.into(), &mut out).unwrap();
        out
    };
    for (_, _, payload) in &rows {
        send(&mut sizer, 1, payload);
    }
    assert_eq!(sizer.held_bytes(), 0);
    // Pieces of one byte, of which the first is missing.
    let pieces: Vec<u8> = (0..160).flat_map(|at| crypto(1 + at * 2, b"x")).collect();
    let held: Vec<usize> = (0..40)
        .map(|flow| {
            let ends = Ends::new([8, 8], "hub.example", 100 + flow);
            send(&mut sizer, 2 + flow, &ends.initial(Side::Client, [&ends.original, &ends.client], &pieces));
            sizer.held_bytes()
        })
        .collect();
    assert!(held[0] > 4000 && held[0] <= 8192 && held[39] == 40 * held[0], "{held:?}");
    let mut sizer = RecordSizer::new(&Options { max_bytes: 50_000, ..Options::default() }).unwrap();
    let mut out = Vec::new();
    for flow in 0..40 {
        let ends = Ends::new([8, 8], "hub.example", 100 + flow);
        out.extend(send(&mut sizer, 2 + flow, &ends.initial(Side::Client, [&ends.original, &ends.client], &pieces)));
        assert!(sizer.held_bytes() <= 50_000);
    }
    assert!(!notices(&out, "evicted").is_empty(), "what is given up is said");
    assert_eq!(records(&out).len(), 40);
}

#[test]
fn hellos_in_pieces_out_of_order_are_read() {
    let ends = Ends::new([8, 8], "hub.example", 1);
    let hello = client_hello("hub.example");
    let ids = [&ends.original[..], &ends.client];
    let piece = |range: std::ops::Range<usize>| crypto(range.start as u16, &hello[range]);
    let first = ends.initial(Side::Client, ids, &[piece(60..hello.len()), piece(5..30), piece(9..9)].concat());
    let second = ends.initial(Side::Client, ids, &[piece(28..61), piece(0..5)].concat());
    let mut rows = ends.conversation(&mut Noise(2));
    rows[0].2 = second;
    let rows = with(&rows, 0, &[(FROM, first)]);
    let (frames, _) = found(&Options::default(), [40_000, 443], &rows);
    assert_eq!(sessions(&frames)[0].0.as_deref(), Some("hub.example"));
    let handshake = |record: &&Record| record.content_type == ContentType::Handshake;
    assert_eq!(records(&frames).iter().filter(handshake).count(), 6);
}
