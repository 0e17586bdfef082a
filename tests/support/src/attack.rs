//! Forged packets of the gateway's flow to its service, made to measure for a place in the bundled capture.

use etherparse::{IpNumber, Ipv4Header, NetSlice, SlicedPacket, TcpHeader, TransportSlice};

use crate::injected::{HOME, SERVICE, Traffic};

/// A command in the bundled capture, in the middle of a connection that goes on.
pub struct Target {
    /// Which packet it is.
    pub at: usize,
    /// The service's port and the gateway's.
    pub ports: [u16; 2],
    /// The sequence number of the byte behind it.
    pub next: u32,
    pub acknowledgement: u32,
    /// Its payload, and that of the command after it.
    pub payload: Vec<u8>,
    pub following: Vec<u8>,
}

/// What is read of a TCP packet between the gateway and its service.
pub struct Exchanged {
    pub from_service: bool,
    pub header: TcpHeader,
    pub payload: Vec<u8>,
}

/// A packet of the gateway's flow to its service, if it is one.
pub fn exchanged(frame: &[u8]) -> Option<Exchanged> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (packet.net, packet.transport) else {
        return None;
    };
    let ends = [ip.header().source(), ip.header().destination()];
    let from_service = ends == [SERVICE, HOME];
    (from_service || ends == [HOME, SERVICE]).then(|| Exchanged {
        from_service,
        header: tcp.to_header(),
        payload: tcp.payload().to_vec(),
    })
}

/// The middle one of the service's packets with data.
pub fn middle(traffic: &Traffic) -> Target {
    let data: Vec<_> = traffic
        .0
        .iter()
        .enumerate()
        .filter_map(|(at, (_, frame))| {
            let packet = exchanged(frame).filter(|packet| packet.from_service && !packet.payload.is_empty())?;
            Some((at, packet))
        })
        .collect();
    let middle = data.len() / 2;
    let ((at, command), (_, following)) = (&data[middle], &data[middle + 1]);
    let first = command.header.sequence_number;
    Target {
        at: *at,
        ports: [command.header.source_port, command.header.destination_port],
        next: first.wrapping_add(command.payload.len() as u32),
        acknowledgement: command.header.acknowledgment_number,
        payload: command.payload.clone(),
        following: following.payload.clone(),
    }
}

/// A TCP segment from the service to the gateway.
#[derive(Clone)]
pub struct Forged {
    pub ports: [u16; 2],
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: Flags,
    pub payload: Vec<u8>,
    pub is_from_gateway: bool,
    pub ip_options: Vec<u8>,
    pub time_to_live: u8,
}

/// The TCP flags of a forged segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flags {
    Data,
    Syn,
    SynAck,
    Reset,
    Fin,
}

impl Target {
    /// A segment that stands `offset` bytes behind the command.
    pub fn forged(&self, offset: i32, payload: &[u8]) -> Forged {
        Forged {
            ports: self.ports,
            sequence: self.next.wrapping_add_signed(offset),
            acknowledgement: self.acknowledgement,
            flags: Flags::Data,
            payload: payload.to_vec(),
            is_from_gateway: false,
            ip_options: Vec::new(),
            time_to_live: 64,
        }
    }
}

impl Forged {
    /// The TCP segment, header first.
    fn tcp(&self) -> Vec<u8> {
        let [service, gateway] = self.ports;
        let (source, destination) = if self.is_from_gateway { (gateway, service) } else { (service, gateway) };
        let mut header = TcpHeader::new(source, destination, self.sequence, 64_240);
        header.acknowledgment_number = self.acknowledgement;
        header.ack = self.flags != Flags::Syn;
        header.syn = matches!(self.flags, Flags::Syn | Flags::SynAck);
        header.rst = self.flags == Flags::Reset;
        header.fin = self.flags == Flags::Fin;
        [&header.to_bytes()[..], &self.payload].concat()
    }

    /// The frame.
    pub fn frame(&self) -> Vec<u8> {
        let tcp = self.tcp();
        self.fragment(0, &tcp, false)
    }

    /// Two IP fragments, the first with this many bytes.
    pub fn fragments(&self, first: usize) -> [Vec<u8>; 2] {
        let tcp = self.tcp();
        [self.fragment(0, &tcp[..first], true), self.fragment(first, &tcp[first..], false)]
    }

    fn fragment(&self, offset: usize, data: &[u8], has_more: bool) -> Vec<u8> {
        let ends = if self.is_from_gateway { [HOME, SERVICE] } else { [SERVICE, HOME] };
        let length = data.len() as u16;
        let mut header = Ipv4Header::new(length, self.time_to_live, IpNumber::TCP, ends[0], ends[1]).unwrap();
        header.options = self.ip_options[..].try_into().unwrap();
        header.identification = 4711;
        header.dont_fragment = false;
        header.more_fragments = has_more;
        header.fragment_offset = u16::try_from(offset / 8).unwrap().try_into().unwrap();
        let ethernet = [&[2; 6][..], &[4; 6], &[8, 0]].concat();
        [&ethernet[..], &header.to_bytes(), data].concat()
    }
}

/// Bytes that look like ciphertext, the same in every run.
pub fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// A TLS record of application data whose header says this length, with so many bytes of body.
pub fn record(length: u16, body: usize) -> Vec<u8> {
    [&[23, 3, 3][..], &length.to_be_bytes(), &noise(body, 5)].concat()
}
