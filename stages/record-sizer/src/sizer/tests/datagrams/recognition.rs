//! The protocol of a flow whose first datagrams are of another one, or of none.

use super::*;

fn wireguard(number: usize, noise: &mut Noise) -> Vec<u8> {
    let padded = 16 * (1 + noise.below(20));
    [&[4, 0, 0, 0, 1, 0, 0, 0, number as u8, 0, 0, 0, 0, 0, 0, 0][..], &noise.bytes(padded + 16)].concat()
}

fn wireguard_handshake(kind: u8, noise: &mut Noise) -> Vec<u8> {
    [&[kind, 0, 0, 0][..], &noise.bytes(if kind == 1 { 144 } else { 88 })].concat()
}

fn matter(number: usize, noise: &mut Noise) -> Vec<u8> {
    let bytes = 30 + noise.below(60);
    [&[0, 77, 0, 0, number as u8, 0, 0, 0][..], &noise.bytes(bytes)].concat()
}

fn esp(number: usize, noise: &mut Noise) -> Vec<u8> {
    let bytes = 40 + noise.below(60);
    [&[1, 2, 3, 4, 0, 0, 0, number as u8][..], &noise.bytes(bytes)].concat()
}

fn dtls(number: usize, noise: &mut Noise) -> Vec<u8> {
    [&[23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, number as u8, 0, 60][..], &noise.bytes(60)].concat()
}

fn dtls_hello(number: usize) -> Vec<u8> {
    [&[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, number as u8, 0, 60][..], &[1; 60]].concat()
}

fn quic(_: usize, noise: &mut Noise) -> Vec<u8> {
    let first = 0x40 | noise.below(32) as u8;
    [&[first, 9, 8, 7, 6, 5, 4, 3, 2][..], &noise.bytes(60)].concat()
}

/// A packet of a handshake that cannot be decrypted, because the snaplen cut it.
fn quic_handshake(noise: &mut Noise) -> Vec<u8> {
    [&[0xe0, 0, 0, 0, 1, 2, 1, 2, 2, 3, 4, 0x40, 90][..], &noise.bytes(90)].concat()
}

/// One datagram of each protocol as it may come first, and of none.
fn odd(noise: &mut Noise) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("one byte", vec![0xff]),
        ("nothing", Vec::new()),
        ("dtls", dtls(200, noise)),
        ("dtls_hello", dtls_hello(200)),
        ("dtls 1.3", [&[0x2f, 1, 2, 0, 30][..], &noise.bytes(30)].concat()),
        ("quic", quic(0, noise)),
        ("quic_handshake", quic_handshake(noise)),
        ("wireguard", wireguard_handshake(1, noise)),
        ("wireguard_packet", wireguard(200, noise)),
        ("matter", matter(200, noise)),
        ("random", noise.bytes(80)),
    ]
}

type Make = fn(usize, &mut Noise) -> Vec<u8>;

#[test]
fn odd_datagrams_first_or_later_leave_a_ports_own_protocol_whole() {
    let protocols: [(&str, u16, Make); 5] = [
        ("wireguard", 51820, wireguard),
        ("matter", 5540, matter),
        ("quic", 443, quic),
        ("dtls", 5684, dtls),
        ("esp", 4500, esp),
    ];
    for (name, port, make) in protocols {
        let mut noise = Noise(port.into());
        let rows =
            timed((0..120).map(|at| (if at % 2 == 0 { TO } else { FROM }, make(at, &mut noise))).collect::<Vec<_>>());
        let (frames, lost) = found(&Options::default(), [40_000, port], &rows);
        let clean = own(&frames);
        assert_eq!((clean.len(), lost), (120, 0), "{name}");
        for (kind, payload) in odd(&mut noise) {
            for direction in [TO, FROM] {
                for (at, times) in [(0, 1), (0, 2), (0, 5), (1, 1), (3, 1), (60, 1), (60, 5)] {
                    let others: Vec<_> = (0..times).map(|_| (direction, payload.clone())).collect();
                    let (frames, _) = found(&Options::default(), [40_000, port], &with(&rows, at, &others));
                    let own = own(&frames);
                    assert_eq!(own.len(), 120, "{name} after {times} of {kind} at {at}");
                    // What it is of its own flow differs only in what packets without a handshake show of their ids.
                    let lengths = |records: &[Record]| records.iter().map(|record| record.protocol).collect::<Vec<_>>();
                    assert_eq!(lengths(&own), lengths(&clean), "{name} after {times} of {kind} at {at}");
                }
            }
        }
    }
}

#[test]
fn protocols_on_the_ports_of_others_are_recognised_by_two_datagrams() {
    for port in [443, 51820, 9000] {
        let mut noise = Noise(port.into());
        let mut tunnel = vec![(FROM, wireguard_handshake(1, &mut noise)), (TO, wireguard_handshake(2, &mut noise))];
        tunnel.extend((0..40).map(|at| (TO, wireguard(at, &mut noise))));
        let mut records_of_dtls = vec![(FROM, dtls_hello(0)), (TO, dtls_hello(0))];
        records_of_dtls.extend((0..40).map(|at| (TO, dtls(at, &mut noise))));
        for (name, datagrams) in [("wireguard", tunnel), ("dtls", records_of_dtls)] {
            let rows = timed(datagrams);
            let (frames, _) = found(&Options::default(), [40_000, port], &rows);
            assert_eq!(records(&frames).len(), 42, "{name} on {port}: what comes within 3 s is held");
            assert_eq!(sessions(&frames).len(), 1, "{name} on {port}");
            // An odd one before does not change that.
            for (kind, odd) in odd(&mut noise) {
                let (frames, _) = found(&Options::default(), [40_000, port], &with(&rows, 0, &[(TO, odd)]));
                let found = records(&frames).into_iter().filter(|record| record.protocol.name() == name);
                assert!(found.count() >= 42, "{name} on {port} after {kind}");
            }
        }
    }
}

#[test]
fn a_protocol_gives_way_to_more_of_another_and_comes_back() {
    let mut noise = Noise(3);
    let genuine = |at: usize, noise: &mut Noise| (if at.is_multiple_of(2) { TO } else { FROM }, dtls(at / 2, noise));
    let mut datagrams: Vec<_> = (0..60).map(|at| genuine(at, &mut noise)).collect();
    // Sixteen datagrams spoke for the first one.
    let others: Vec<_> = (0..30).map(|at| (FROM, wireguard_handshake(1 + at % 2, &mut noise))).collect();
    datagrams.splice(30..30, others);
    let (frames, _) = found(&Options::default(), [5000, 5684], &timed(datagrams));
    let of = |name: &str| records(&frames).iter().filter(|record| record.protocol.name() == name).count();
    // Those of the last three seconds before the seventeenth are held.
    assert_eq!((of("dtls"), of("wireguard")), (60, 30 - 16 + 3));
}

#[test]
fn a_one_byte_datagram_and_what_gets_no_size_is_loss_of_a_known_flow() {
    let mut noise = Noise(4);
    let mut rows = timed((0..60).map(|at| (TO, quic(at, &mut noise))).collect::<Vec<_>>());
    let (_, lost) = found(&Options::default(), [40_000, 443], &rows);
    assert_eq!(lost, 0);
    // Of which the fixed bit is not set, and which has no known id.
    rows[30].2[..9].fill(0x10);
    let (frames, lost) = found(&Options::default(), [40_000, 443], &with(&rows, 20, &[(TO, vec![0])]));
    assert_eq!((records(&frames).len(), lost), (59 + 1, 1));
    rows[30].2[0] = 0x80;
    let (frames, lost) = found(&Options::default(), [40_000, 443], &rows);
    assert_eq!((records(&frames).len(), lost), (59, 69));
    assert_eq!(notices(&frames, "loss").len(), 1);
}

/// A message of STUN with so many attributes of eight bytes.
fn stun(attributes: usize, noise: &mut Noise) -> Vec<u8> {
    let length = (8 * attributes) as u8;
    [&[0, 1, 0, length, 0x21, 0x12, 0xa4, 0x42][..], &noise.bytes(12 + 8 * attributes)].concat()
}

/// The records of datagrams to the port of ESP, by protocol.
fn found_on_esps_port(datagrams: &[(Direction, Vec<u8>)]) -> Vec<(String, usize)> {
    let (frames, _) = found(&Options::default(), [40_000, 4500], &timed(datagrams.to_vec()));
    let mut counts: Vec<(String, usize)> = Vec::new();
    for record in records(&frames) {
        let name = record.protocol.name().to_owned();
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}

fn of(name: &str, count: usize) -> Vec<(String, usize)> {
    vec![(name.to_owned(), count)]
}

#[test]
fn other_protocols_on_the_port_of_esp_are_recognized() {
    let mut noise = Noise(11);
    let both = |at: usize| if at.is_multiple_of(3) { FROM } else { TO };
    // A tunnel from its middle: both directions, or one.
    let tunnel: Vec<_> = (0..40).map(|at| (both(at), wireguard(at, &mut noise))).collect();
    assert_eq!(found_on_esps_port(&tunnel), of("wireguard", 40));
    let one_way: Vec<_> = tunnel.iter().map(|(_, payload)| (TO, payload.clone())).collect();
    assert_eq!(found_on_esps_port(&one_way), of("wireguard", 40));
    assert_eq!(found_on_esps_port(&tunnel[..1]), of("wireguard", 1));
    // With STUN, which finds the way through a NAT, before, between and behind.
    for (name, make) in [("wireguard", wireguard as Make), ("dtls", dtls), ("esp", esp)] {
        for place in [0, 1, 2] {
            let mixed: Vec<_> = (0..60)
                .map(|at| {
                    let is_stun = at % 3 == place;
                    (both(at / 2), if is_stun { stun(at % 5, &mut noise) } else { make(at, &mut noise) })
                })
                .collect();
            assert_eq!(found_on_esps_port(&mixed), of(name, 40), "{name} {place}");
        }
    }
    assert_eq!(found_on_esps_port(&(0..9).map(|at| (TO, stun(at, &mut noise))).collect::<Vec<_>>()), []);
    // An odd one before, which may be of ESP, ends with the next one.
    let odd = [(FROM, noise.bytes(80))];
    let behind = [&odd[..], &tunnel].concat();
    assert_eq!(found_on_esps_port(&behind), [("esp".to_owned(), 1), ("wireguard".to_owned(), 40)]);
}

#[test]
fn esp_stays_esp_whatever_its_index_is() {
    let mut noise = Noise(12);
    let with_index = |index: u32, number: u32, noise: &mut Noise, bytes: usize| {
        [&index.to_be_bytes()[..], &number.to_be_bytes(), &noise.bytes(bytes)].concat()
    };
    // Indexes that begin like messages of WireGuard, STUN and DTLS, with lengths that are multiples of 16.
    for index in [0x0400_0000, 0x0100_0000, 0x0001_0048, 0x17fe_fd00, 0x16fe_ff00, 0xc5d1_9b02] {
        for first in [1, 0x2112_a400] {
            let datagrams: Vec<_> = (0..120)
                .map(|at| (TO, with_index(index, first + at, &mut noise, 56 + 16 * (at as usize % 4))))
                .collect();
            assert_eq!(found_on_esps_port(&datagrams), of("esp", 120), "{index:x} {first:x}");
            assert_eq!(found_on_esps_port(&datagrams[..1]), of("esp", 1), "{index:x} {first:x}");
        }
    }
    // AES-GCM whose initialization vector counts from its last byte.
    let counts = |at: u8, noise: &mut Noise| {
        [&[4, 0, 0, 0, 0, 0, 0, at][..], &[0, 0, 0, 0, 0, 0, 0, at], &noise.bytes(48)].concat()
    };
    let datagrams: Vec<_> = (1..60).map(|at| (TO, counts(at, &mut noise))).collect();
    assert_eq!(found_on_esps_port(&datagrams), of("esp", 59));
}

/// DTLS 1.3 in mid-stream: the sequence number is encrypted (RFC 9147, section 4.2.3). Its length is left out if it is 0.
fn dtls13(flags: u8, noise: &mut Noise) -> Vec<u8> {
    let bytes = 30 + noise.below(60);
    let length = if flags & 4 == 0 { vec![] } else { vec![0, bytes as u8] };
    let id = if flags & 16 == 0 { vec![] } else { vec![9; 4] };
    [&[flags][..], &id, &noise.bytes(if flags & 8 == 0 { 1 } else { 2 }), &length, &noise.bytes(bytes)].concat()
}

/// A packet of RTP (RFC 3550, section 5.1).
fn rtp(number: usize, noise: &mut Noise) -> Vec<u8> {
    let clock = (960 * number as u32).to_be_bytes();
    [&[0x80, 96, 0x77, number as u8][..], &clock, &[5, 6, 7, 8], &noise.bytes(60)].concat()
}

#[test]
fn dtls_13_and_rtp_from_their_middle_are_not_taken_for_esp() {
    let mut noise = Noise(13);
    let mut mixed: Vec<_> = (0..60).map(|at| (TO, rtp(at, &mut noise))).collect();
    let ways: [fn(usize) -> Direction; 2] = [|_| TO, |at| if at.is_multiple_of(3) { FROM } else { TO }];
    for (ends, way) in ways.into_iter().enumerate() {
        // The first ones of each end may be of ESP.
        let most = MOST_NEW * (1 + ends);
        for flags in [0x2b, 0x2f, 0x23, 0x3f] {
            let rows: Vec<_> = (0..60).map(|at| (way(at), dtls13(flags, &mut noise))).collect();
            let esp: Vec<_> = found_on_esps_port(&rows).into_iter().filter(|(name, _)| name == "esp").collect();
            assert!(esp.iter().all(|(_, count)| *count <= most), "{flags:x} {ends} {esp:?}");
        }
        let rows: Vec<_> = (0..60).map(|at| (way(at), rtp(at, &mut noise))).collect();
        assert_eq!(found_on_esps_port(&rows), of("esp", most));
    }
    // ESP is none of these, whatever comes between, and however many connections of it alternate.
    let tunnels = |at: usize, noise: &mut Noise| {
        let mut packet = esp(at, noise);
        packet[0] = (at % 2) as u8 + 1;
        packet
    };
    assert_eq!(found_on_esps_port(&(0..60).map(|at| (TO, tunnels(at, &mut noise))).collect::<Vec<_>>()), of("esp", 60));
    mixed.extend((0..60).map(|at| (TO, tunnels(at, &mut noise))));
    assert_eq!(found_on_esps_port(&mixed), of("esp", MOST_NEW + 60 - 2));
}

/// So many datagrams of one end are taken for ESP before their indexes tell that they are not.
const MOST_NEW: usize = 2;

#[test]
fn messages_that_are_missing_by_their_numbers_are_said_once_a_flow() {
    for (name, port, make) in
        [("wireguard", 51820, wireguard as Make), ("matter", 5540, matter), ("esp", 4500, esp), ("dtls", 5684, dtls)]
    {
        let mut noise = Noise(40);
        let all: Vec<_> = (1..80).map(|number| (if number % 3 == 0 { FROM } else { TO }, number)).collect();
        let gaps = |numbers: &[(Direction, usize)], noise: &mut Noise| {
            let datagrams = numbers.iter().map(|(direction, number)| (*direction, make(*number, noise)));
            notices(&found(&Options::default(), [5000, port], &timed(datagrams)).0, "gap")
        };
        // The other direction has the numbers between.
        let one_way: Vec<_> = all.iter().map(|(_, number)| (TO, *number)).collect();
        assert_eq!(gaps(&one_way, &mut noise), Vec::<String>::new(), "{name}");
        let mut disordered = one_way.clone();
        disordered.chunks_mut(5).for_each(<[_]>::reverse);
        assert_eq!(gaps(&[disordered, one_way.clone()].concat(), &mut noise), Vec::<String>::new(), "{name}");
        let lost = |number: usize| (30..40).contains(&number) || number == 50;
        let kept: Vec<_> = one_way.into_iter().filter(|(_, number)| !lost(*number)).collect();
        let said = "11 of 79 messages are missing by their numbers (11 to the gateway, 0 from it): they were lost on the \
                    way, or by the capture";
        assert_eq!(gaps(&kept, &mut noise), [said], "{name}");
        // Each direction counts its own.
        let own = (1..80).flat_map(|number| [(FROM, number / 4 + 1), (TO, number)]);
        let kept: Vec<_> = own.filter(|(way, number)| *way == FROM || !lost(*number)).collect();
        let said = gaps(&kept, &mut noise);
        assert!(said.len() == 1 && said[0].contains("(11 to the gateway, 0 from it)"), "{name} {said:?}");
    }
}

/// Programs that count the messages of both directions as one leave no hole: nobody knows whose numbers are missing.
#[test]
fn numbers_that_the_other_direction_may_have_are_not_missing() {
    for (name, port, make) in
        [("wireguard", 51820, wireguard as Make), ("matter", 5540, matter), ("esp", 4500, esp), ("dtls", 5684, dtls)]
    {
        let mut noise = Noise(41);
        let mut gaps = |numbers: &[(Direction, usize)]| {
            let datagrams = numbers.iter().map(|(direction, number)| (*direction, make(*number, &mut noise)));
            notices(&found(&Options::default(), [5000, port], &timed(datagrams)).0, "gap")
        };
        let of_one = |every: usize| {
            let way = move |number: usize| if number.is_multiple_of(every) { FROM } else { TO };
            (1..80).map(move |number| (way(number), number)).collect::<Vec<_>>()
        };
        for every in [2, 3, 40] {
            assert_eq!(gaps(&of_one(every)), Vec::<String>::new(), "{name} {every}");
        }
        let mut disordered = of_one(3);
        disordered.chunks_mut(5).for_each(<[_]>::reverse);
        assert_eq!(gaps(&disordered), Vec::<String>::new(), "{name}");
        let late = [&of_one(2)[..30], &of_one(2)[31..], &of_one(2)[30..31]].concat();
        assert_eq!(gaps(&late), Vec::<String>::new(), "{name}");
        // An end that is far behind the other counts for itself, whether few or many of its own come.
        for few in [1, 9] {
            let behind = (100..200).flat_map(|number| [(TO, number), (FROM, number / (10 * few))]);
            let said = gaps(&behind.filter(|(_, number)| *number != 150).collect::<Vec<_>>());
            assert!(said.len() == 1 && said[0].starts_with("1 of"), "{name} {said:?}");
        }
    }
}
