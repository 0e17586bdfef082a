//! Segments of TLS and DTLS, as the record finder's target takes them.

use pcap_file::pcap::PcapPacket;

use super::attacks;

pub(super) const IS_UDP: u16 = 1 << 8;
pub(super) const FROM_GATEWAY: u16 = 1 << 9;
const LATER: u16 = 1 << 10;
const ODD_TIME: u16 = 1 << 11;
const STEP_BACK: u16 = 1 << 12;
const PUSH: u16 = 0x18;
/// The second to fourth flow of a transport.
pub(super) const SECOND: u16 = 1 << 14;
pub(super) const THIRD: u16 = 2 << 14;
pub(super) const FOURTH: u16 = 3 << 14;

/// A segment.
#[derive(Clone)]
pub(super) struct Row {
    kind: u16,
    /// Where it begins relative to the end of the one before in its direction.
    shift: i16,
    cut: u16,
    payload: Vec<u8>,
}

impl Row {
    pub(super) fn new(kind: u16, payload: Vec<u8>) -> Self {
        Self { kind, shift: 0, cut: 0, payload }
    }
}

pub(super) fn inputs(homes: &[Vec<PcapPacket<'_>>; 2]) -> Vec<(&'static str, Vec<u8>)> {
    let [old, new] = homes.each_ref().map(|home| rows(home));
    let mut gap = old.clone();
    let at = gap.iter().rposition(|row| row.payload.len() > 60).unwrap();
    let lost = gap.remove(at);
    // The next of that direction begins where it would have.
    if let Some(next) = gap[at..].iter_mut().find(|row| (row.kind ^ lost.kind) & FROM_GATEWAY == 0) {
        next.shift = i16::try_from(lost.payload.len()).unwrap();
        next.kind |= LATER;
    }
    let mut twice = new.clone();
    for at in (0..twice.len()).rev().step_by(3) {
        let mut again = twice[at].clone();
        again.kind &= !2;
        again.shift = -i16::try_from(again.payload.len()).unwrap();
        twice.insert(at + 1, again);
    }
    let mut cut = old.clone();
    for row in &mut cut {
        let kept = row.payload.len().min(70);
        row.cut = (row.payload.len() - kept) as u16;
        row.payload.truncate(kept);
    }
    let mut clocks = new.clone();
    let middle = clocks.len() / 2;
    clocks.iter_mut().step_by(9).for_each(|row| row.kind |= ODD_TIME);
    clocks[middle].kind |= STEP_BACK;
    let in_the_middle: Vec<Row> = old.iter().rev().take(12).rev().cloned().collect();
    vec![
        ("tls12", encode(&old)),
        ("tls13", encode(&new)),
        ("gap", encode(&gap)),
        ("twice", encode(&twice)),
        ("snaplen", encode(&cut)),
        ("clocks", encode(&clocks)),
        ("middle", encode(&in_the_middle)),
        ("dtls", encode(&dtls())),
        ("dtls13", encode(&dtls13())),
        ("quic", encode(&quic())),
        ("matter", encode(&matter())),
        ("tunnels", encode(&tunnels())),
        ("tuya", encode(&tuya())),
        ("quic_forged", encode(&attacks::quic())),
        ("dtls_forged", encode(&attacks::dtls())),
        ("first_datagrams", encode(&attacks::first_datagrams())),
        ("ssl2", encode(&[Row::new(PUSH | FROM_GATEWAY, ssl2_hello()), Row::new(PUSH, record(22, &[2, 0, 0, 0]))])),
        ("http", encode(&[Row::new(PUSH | FROM_GATEWAY, b"CONNECT hub.example:443 HTTP/1.1\r\n\r\n".to_vec())])),
    ]
}

/// The segments of a home's connection: Ethernet, IPv4 and TCP, without options in IP.
fn rows(home: &[PcapPacket<'_>]) -> Vec<Row> {
    let row = |packet: &PcapPacket<'_>| {
        let data = &packet.data;
        let payload = data.get(34 + usize::from(data[46] >> 4) * 4..).unwrap_or_default().to_vec();
        let direction = if data[34..36] == 443_u16.to_be_bytes() { 0 } else { FROM_GATEWAY };
        Row::new(u16::from(data[47]) | direction, payload)
    };
    home.iter().map(row).collect()
}

fn dtls() -> Vec<Row> {
    let hello: Vec<u8> =
        [&[1, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0, 42, 0xfe, 0xfd][..], &[7; 32], &[0, 0, 0, 2, 0xc0, 0xae, 1, 0]].concat();
    let record = |kind, epoch, body: &[u8]| {
        let [high, low] = (body.len() as u16).to_be_bytes();
        [&[kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 1, high, low], body].concat()
    };
    vec![
        Row::new(IS_UDP | FROM_GATEWAY, record(22, 0, &hello)),
        Row::new(IS_UDP, [record(20, 0, &[1]), record(22, 1, &[9; 48])].concat()),
        Row::new(IS_UDP, record(23, 1, &[9; 60])),
        Row { cut: 20, ..Row::new(IS_UDP | FROM_GATEWAY, record(23, 1, &[9; 24])) },
        Row::new(IS_UDP | FROM_GATEWAY, [&[0xc3, 0, 0, 0, 1, 8][..], &[5; 40]].concat()),
    ]
}

/// Records with headers of each form, with connection ids and without.
fn dtls13() -> Vec<Row> {
    let with_id = [&[25, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 7, b'i', b'd', 0, 30][..], &[9; 30]].concat();
    let unified = |header: &[u8]| Row::new(IS_UDP, [header, &[9; 30]].concat());
    vec![
        Row::new(IS_UDP | FROM_GATEWAY, with_id),
        unified(&[0x2e, 1, 2, 0, 30]),
        unified(&[0x3f, b'i', b'd', 1, 2, 0, 30]),
        unified(&[0x27, 1, 0, 30]),
        unified(&[0x23, 1]),
    ]
}

/// A packet of a handshake, and packets with short headers, on the port of HTTP/3.
fn quic() -> Vec<Row> {
    let initial =
        [&[0xc3, 0, 0, 0, 1, 4, 1, 2, 3, 4, 2, 5, 6, 0, 0x40, 60][..], &[5; 60], &[0x4a, 1, 2, 3, 4], &[8; 40]];
    let short = |first: u8| Row::new(IS_UDP | SECOND | FROM_GATEWAY, [&[first, 1, 2, 3, 4][..], &[first; 40]].concat());
    let long = Row::new(IS_UDP | SECOND | FROM_GATEWAY, initial.concat());
    [long].into_iter().chain((0x40..0x48).map(short)).collect()
}

/// Messages over UDP and TCP.
fn matter() -> Vec<Row> {
    let message = [&[4, 77, 0, 0, 1, 0, 0, 0][..], &[1; 8], &[7; 50]].concat();
    let framed = [&[66, 0, 0, 0][..], &message].concat();
    vec![
        Row::new(IS_UDP | THIRD, message.clone()),
        Row::new(IS_UDP | THIRD | FROM_GATEWAY, [&[0, 0, 0, 0, 2, 0, 0, 0][..], &[7; 20]].concat()),
        Row::new(IS_UDP | THIRD, message),
        Row::new(PUSH | SECOND, framed[..30].to_vec()),
        Row::new(PUSH | SECOND, [&framed[30..], &framed[..]].concat()),
    ]
}

/// WireGuard, and ESP in UDP.
fn tunnels() -> Vec<Row> {
    let packet = |counter: u8| [&[4, 0, 0, 0, 1, 0, 0, 0, counter, 0, 0, 0, 0, 0, 0, 0][..], &[9; 48]].concat();
    let esp = |number: u8| [&[1, 2, 3, 4, 0, 0, 0, number][..], &[9; 60]].concat();
    vec![
        Row::new(IS_UDP | FROM_GATEWAY, [&[1, 0, 0, 0][..], &[5; 144]].concat()),
        Row::new(IS_UDP, packet(0)),
        Row::new(IS_UDP, packet(0)),
        Row::new(IS_UDP | FOURTH, esp(1)),
        Row::new(IS_UDP | FOURTH, [0; 60].to_vec()),
        Row::new(IS_UDP | FOURTH | FROM_GATEWAY, esp(2)),
    ]
}

fn tuya() -> Vec<Row> {
    let message = |prefix: [u8; 4], content: u8| {
        [&prefix[..], &[0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, content], &vec![3; content.into()]].concat()
    };
    let [old, other] = [message([0, 0, 0x55, 0xaa], 40), message([0, 0, 0x66, 0x99], 0xff)];
    vec![
        Row::new(PUSH | THIRD, old.clone()),
        Row::new(PUSH | THIRD, [&old[..], &old[..20]].concat()),
        Row { shift: 36, ..Row::new(PUSH | THIRD, old) },
        Row::new(PUSH | FOURTH, other),
    ]
}

/// A hello of SSL 2 that offers TLS (RFC 5246, appendix E.2).
fn ssl2_hello() -> Vec<u8> {
    [&[0x80, 28, 1, 3, 1, 0, 3, 0, 0, 0, 16, 0, 0, 0x2f][..], &[7; 16]].concat()
}

fn record(content_type: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = (body.len() as u16).to_be_bytes();
    [&[content_type, 3, 3, high, low], body].concat()
}

fn encode(rows: &[Row]) -> Vec<u8> {
    let encode = |Row { kind, shift, cut, payload }: &Row| {
        let numbers = [*kind, shift.cast_unsigned(), *cut, payload.len() as u16].map(u16::to_be_bytes);
        [numbers.as_flattened(), payload].concat()
    };
    rows.iter().flat_map(encode).collect()
}
