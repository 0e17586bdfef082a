//! DTLS with records that others have forged, and other protocols that look like it.

use super::*;

/// A record with a header as up to DTLS 1.2.
fn record(kind: u8, epoch: u8, number: u64, body: &[u8]) -> Vec<u8> {
    let [.., n0, n1, n2, n3, n4, n5] = number.to_be_bytes();
    let length = (body.len() as u16).to_be_bytes();
    [&[kind, 0xfe, 0xfd, 0, epoch, n0, n1, n2, n3, n4, n5][..], &length, body].concat()
}

fn hello(kind: u8, number: u64, body: &[u8]) -> Vec<u8> {
    let length = [0, (body.len() >> 8) as u8, body.len() as u8];
    record(22, 0, number, &[&[kind][..], &length, &[0, 0, 0, 0, 0], &length, body].concat())
}

fn client_hello(random: u8) -> Vec<u8> {
    let name = [&[0, 0, 0, 9, 0, 7, 0, 0, 4][..], &[b'a' + random; 4]].concat();
    hello(1, 0, &[&[0xfe, 0xfd][..], &[random; 32], &[0, 0, 0, 4, 0xc0, 0xae, 0xc0, 0x2b, 1, 0, 0, 13], &name].concat())
}

/// A server's hello that chooses this suite, perhaps for DTLS 1.3.
fn server_hello(random: u8, suite: u16, is_1_3: bool) -> Vec<u8> {
    let versions: &[u8] = if is_1_3 { &[0, 6, 0, 43, 0, 2, 0xfe, 0xfc] } else { &[0, 0] };
    hello(2, 0, &[&[0xfe, 0xfd][..], &[random; 32], &[0], &suite.to_be_bytes(), &[0], versions].concat())
}

/// AES-GCM, which adds 24 bytes to a record, and AES-CCM-8, which adds 16.
const GCM: u16 = 0xc02b;
const CCM_8: u16 = 0xc0ae;

/// A handshake, and records of 40 bytes of plaintext and more, the gateway being the client.
fn conversation() -> Vec<Row> {
    let mut datagrams = vec![(FROM, client_hello(1)), (TO, server_hello(1, GCM, false))];
    for number in 0..40_u64 {
        let kind = if number == 0 { 22 } else { 23 };
        for direction in [FROM, TO] {
            // A `Finished` has 24 bytes of plaintext.
            let bytes = if number == 0 { 48 } else { 64 + number as usize };
            datagrams.push((direction, record(kind, 1, number, &vec![9; bytes])));
        }
    }
    timed(datagrams)
}

#[test]
fn forged_records_take_no_plaintext_from_others() {
    let rows = conversation();
    let clean = own(&found(&Options::default(), [5000, 5684], &rows).0);
    assert_eq!(clean.len(), 82);
    for (number, record) in clean[2..].iter().enumerate() {
        assert_eq!(record.plaintext, Some([if number < 2 { 24 } else { 40 + number as u64 / 2 }; 2]));
    }
    let finished = |direction, number| (direction, record(22, 1, number, &[8; 40]));
    let hellos = vec![(FROM, client_hello(2)), (TO, server_hello(2, CCM_8, false))];
    let forged = [
        vec![(TO, record(23, 2, 0, &[8; 33]))],
        vec![(TO, record(23, 0xff, 1 << 40, &[8; 33])), (FROM, record(23, 0xff, 1 << 40, &[8; 33]))],
        vec![(TO, record(20, 1, 1000, &[1])), (FROM, record(20, 1, 1000, &[1]))],
        vec![(TO, record(23, 1, (1 << 48) - 1, &[8; 33]))],
        vec![(FROM, client_hello(2))],
        vec![(TO, server_hello(2, CCM_8, false))],
        vec![(TO, server_hello(2, CCM_8, true)), (TO, [&[0x2e, 1, 2, 0, 30][..], &[9; 30]].concat())],
        vec![(TO, [&[25, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 50, b'i', b'd', 0, 30][..], &[9; 30]].concat())],
        hellos.clone(),
        [hellos, vec![finished(FROM, 0), finished(TO, 0)]].concat(),
        vec![(TO, vec![0]), (FROM, vec![0x16; 60])],
        (0..6).map(|random| (FROM, client_hello(3 + random))).collect(),
    ];
    for (kind, forged) in forged.into_iter().enumerate() {
        // A whole handshake that is forged in the same moment cannot be told from the other.
        for at in [0, 1, 2, 3, 4, 5, 9, 30, 82].into_iter().filter(|at| kind != 9 || ![4, 5].contains(at)) {
            let (frames, _) = found(&Options::default(), [5000, 5684], &with(&rows, at, &forged));
            let own = own(&frames);
            assert_eq!(own.len(), clean.len(), "forged {kind} at {at}");
            let differs = own.iter().zip(&clean).find(|(own, clean)| own != clean);
            assert!(differs.is_none(), "forged {kind} at {at}: {differs:?}");
            let last = sessions(&frames).pop().unwrap().1.unwrap_or_default();
            assert!(at == 82 || last.contains("GCM"), "forged {kind} at {at}: {last}");
        }
    }
}

#[test]
fn a_datagram_captured_twice_counts_once_whatever_is_forged() {
    let rows: Vec<Row> = conversation().into_iter().flat_map(|row| [row.clone(), row]).collect();
    let forged = [
        vec![],
        vec![(TO, record(23, 1, (1 << 48) - 1, &[8; 33]))],
        vec![(FROM, client_hello(2))],
        vec![(TO, record(23, 7, 5, &[8; 33]))],
    ];
    for forged in forged {
        for at in [0, 2, 8, 50] {
            let (frames, _) = found(&Options::default(), [5000, 5684], &with(&rows, at, &forged));
            assert_eq!(own(&frames).len(), 82, "at {at}");
        }
    }
}

/// Networks and mirrors may give a hello once more behind records that its keys protect.
#[test]
fn hellos_that_come_again_late_begin_no_session() {
    let late = [(FROM, client_hello(1)), (TO, server_hello(1, GCM, false))];
    let again = [(TO, server_hello(1, GCM, false)), (FROM, client_hello(1)), (FROM, client_hello(1))];
    let conversation = conversation();
    let clean = found(&Options::default(), [5000, 5684], &conversation).0;
    for late in [&late[..1], &late[1..], &late, &again] {
        for at in [3, 4, 8, 50] {
            // Then the data, too, once more.
            let rows = with(&conversation, at, late);
            let (_, direction, payload) = conversation[at - 1].clone();
            let (frames, _) = found(&Options::default(), [5000, 5684], &with(&rows, at, &[(direction, payload)]));
            assert_eq!(records(&frames), own(&frames), "at {at}");
            assert_eq!(own(&frames), own(&clean), "at {at}");
            assert_eq!(sessions(&frames).len(), 1);
        }
    }
    // One with another number is sent again, or forged to change the suite.
    for late in [server_hello(1, CCM_8, false), hello(2, 9, &server_hello(1, CCM_8, false)[25..])] {
        let (frames, _) = found(&Options::default(), [5000, 5684], &with(&conversation, 8, &[(TO, late)]));
        assert_eq!(own(&frames), own(&clean));
        assert_eq!(sessions(&frames).len(), 1);
    }
}

#[test]
fn a_device_that_begins_again_has_its_new_suite() {
    let again = [(FROM, client_hello(2)), (TO, server_hello(2, CCM_8, false))].into_iter();
    let data = (0..20).flat_map(|number| [FROM, TO].map(|way| (way, record(23, 1, number, &[9; 56]))));
    let rows = conversation().into_iter().map(|(_, direction, payload)| (direction, payload)).chain(again).chain(data);
    let (frames, _) = found(&Options::default(), [5000, 5684], &timed(rows.collect::<Vec<_>>()));
    let records = records(&frames);
    assert_eq!(records.len(), 82 + 42);
    assert!(records[84..].iter().all(|record| record.plaintext == Some([40; 2])));
    let suites: Vec<String> = sessions(&frames).into_iter().map(|(_, suite, _)| suite.unwrap()).collect();
    assert!(suites.len() == 2 && suites[0].contains("GCM") && suites[1].contains("CCM_8"), "{suites:?}");
}

#[test]
fn keys_of_a_handshake_are_not_those_of_records_that_count_from_elsewhere() {
    // A forged hello before a session whose own was not captured.
    let forged = (TO, server_hello(2, CCM_8, false));
    let data = (500..520).flat_map(|number| [FROM, TO].map(|way| (way, record(23, 1, number, &[9; 56]))));
    let (frames, _) =
        found(&Options::default(), [5000, 5684], &timed([forged].into_iter().chain(data).collect::<Vec<_>>()));
    assert_eq!(records(&frames).len(), 41);
    assert!(records(&frames)[1..].iter().all(|record| record.plaintext.is_none()));
}

#[test]
fn a_direction_of_which_much_is_lost_keeps_its_keys() {
    // Nothing of the service is captured between its hello and its record 900.
    let mut rows = conversation();
    rows.retain(|(_, direction, payload)| *direction == FROM || payload[4] == 0);
    rows.extend((1..20).map(|at| (at * 7 * STEP_NS, TO, record(23, 1, 900 + at.unsigned_abs(), &[9; 64]))));
    rows.sort_by_key(|(time_ns, ..)| *time_ns);
    let (frames, _) = found(&Options::default(), [5000, 5684], &rows);
    let sized = own(&frames).iter().filter(|record| !record.handshake && record.plaintext.is_some()).count();
    assert_eq!((sized, sessions(&frames).len()), (39 + 19, 1));
}

/// A record of DTLS 1.3 with an id, a number of two bytes and a length.
fn unified(id: &[u8], noise: &mut Noise, bytes: usize) -> Vec<u8> {
    [
        &[0x2f | if id.is_empty() { 0 } else { 0x10 }][..],
        id,
        &noise.bytes(2),
        &(bytes as u16).to_be_bytes(),
        &noise.bytes(bytes),
    ]
    .concat()
}

#[test]
fn dtls_1_3_without_its_handshake_needs_several_datagrams_of_both_directions() {
    let mut noise = Noise(1);
    for id in [&b""[..], b"id", b"of eight"] {
        let both: Vec<_> =
            (0..20).map(|at| (if at % 2 == 0 { TO } else { FROM }, unified(id, &mut noise, 30 + at))).collect();
        let (frames, _) = found(&Options::default(), [5000, 9000], &timed(both.clone()));
        let lengths: Vec<u32> = records(&frames).iter().map(|record| record.length).collect();
        assert_eq!(lengths, (32..50).collect::<Vec<_>>(), "from 3 s before the third of each direction on");
        let one_way: Vec<_> = both.into_iter().map(|(_, payload)| (TO, payload)).collect();
        assert!(records(&found(&Options::default(), [5000, 9000], &timed(one_way)).0).is_empty());
    }
}

/// A message of ONC RPC as NFS has them: calls with credentials, answers with attributes and data.
fn nfs(noise: &mut Noise, number: u32, way: Direction) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let xid = 0x2f00_0000 | number << 6 | 0x24;
    let handle = [words(&[32]), noise.bytes(32)].concat();
    if way == FROM {
        let call =
            words(&[xid, 0, 2, 100_003, 3, [1, 3, 4, 6][noise.below(4)], 1, 28, number, 4, 0x6875_6200, 0, 0, 0, 0, 0]);
        [call, handle, words(&[0, noise.below(9) as u32 * 4096, 4096])].concat()
    } else {
        let data = noise.below(1200) & !3;
        let attributes = words(&[1, 1, 0o644, 1, 1000, 1000, 0, 4096, 0, 4096]);
        [words(&[xid, 1, 0, 0, 0, 0, 0]), attributes, words(&[data as u32, 1, data as u32]), noise.bytes(data)].concat()
    }
}

/// A packet in GTP-U, with the extension header of 5G or a sequence number.
fn gtp(noise: &mut Noise, number: u32, way: Direction) -> Vec<u8> {
    let inner = 40 + noise.below(1000);
    let [high, low] = (inner as u16).to_be_bytes();
    let ip = [
        &[0x45, 0, high, low, 0, number as u8, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2][..],
        &noise.bytes(inner - 20),
    ];
    let [long, short] = ((inner + 8) as u16).to_be_bytes();
    let [n0, n1] = (number as u16).to_be_bytes();
    let teid: &[u8] = if way == TO { &[0, 0, 0x2c, 1] } else { &[0, 0, 0x24, 9] };
    let flags = if number.is_multiple_of(3) { 0x32 } else { 0x34 };
    let extension: &[u8] = if flags == 0x34 { &[1, 0, 9, 0] } else { &[] };
    [&[flags, 0xff, long, short][..], teid, &[n0, n1, 0, if flags == 0x34 { 0x85 } else { 0 }], extension, &ip.concat()]
        .concat()
}

/// Random bytes that begin as records of DTLS 1.3 do.
fn random(noise: &mut Noise, _: u32, _: Direction) -> Vec<u8> {
    let length = 20 + noise.below(900);
    [&[0x24 | noise.below(32) as u8 & 0x1b][..], &noise.bytes(length)].concat()
}

type Make = fn(&mut Noise, u32, Direction) -> Vec<u8>;

#[test]
fn nfs_and_gtp_u_and_random_bytes_are_no_dtls() {
    let (mut datagrams, mut unified_starts) = (0, 0);
    for seed in 0..150 {
        let mut noise = Noise(seed);
        let makers: [(u16, Make); 3] = [(2049, nfs), (2152, gtp), (9000, random)];
        for (port, make) in makers {
            let rows = timed(
                (0..120)
                    .map(|at| {
                        let way = if noise.below(2) == 0 { TO } else { FROM };
                        (way, make(&mut noise, at, way))
                    })
                    .collect::<Vec<_>>(),
            );
            datagrams += rows.len();
            unified_starts += rows.iter().filter(|(_, _, payload)| payload[0] & 0xe4 == 0x24).count();
            let (frames, _) = found(&Options::default(), [40_000, port], &rows);
            assert!(records(&frames).is_empty(), "{port}: {:?}", records(&frames)[0]);
        }
    }
    assert!(unified_starts * 2 > datagrams, "{unified_starts} of {datagrams} begin as DTLS 1.3 does");
}
