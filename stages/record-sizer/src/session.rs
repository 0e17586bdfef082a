//! What is known of a flow's TLS session: who is the client, what protects the records, whether keys are being agreed.

use sizeleak_frame::{ContentType, Direction, Session as Told};
use tls_parser::TlsCipherSuite;

use crate::handshake::{ClientHello, Hello, ServerHello};
use crate::plaintext::{Protection, exactly, is_1_3};
use crate::record::Header;
use crate::tls13::{End, Flights};

/// A session, or the absence of one where its handshake was not seen.
#[derive(Debug, Default)]
pub(crate) struct Session {
    client: Option<Direction>,
    greeting: Option<ClientHello>,
    server: Option<ServerHello>,
    phase: Phase,
    /// By direction, in the order of their numbers.
    keys: [Keys; 2],
    told: bool,
}

#[derive(Debug, Default)]
enum Phase {
    /// No handshake was seen.
    #[default]
    Unknown,
    /// Hellos are exchanged.
    Greeting,
    /// Up to TLS 1.2: until both have sent their `Finished`.
    Agreeing,
    /// TLS 1.3.
    Flights(Box<Flights>),
    Agreed,
}

/// What protects one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Keys {
    #[default]
    Unknown,
    /// Nothing yet.
    Clear,
    /// Something the handshake has not shown yet: keys changed before the server's hello was seen.
    Early,
    Known {
        protection: Protection,
        finished: bool,
    },
}

/// What a record is worth knowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) plaintext: Option<[u64; 2]>,
    pub(crate) handshake: bool,
}

impl Session {
    /// A session whose stream was seen from its beginning.
    pub(crate) fn from_beginning() -> Self {
        Self { keys: [Keys::Clear; 2], ..Self::default() }
    }

    /// Takes a hello. True if it tells something new.
    pub(crate) fn hello(&mut self, hello: Hello, direction: Direction, time_ns: i64) -> bool {
        match hello {
            Hello::Client(hello) => self.client_hello(hello, direction),
            Hello::Server(hello) => self.server_hello(hello, direction, time_ns),
        }
    }

    /// Takes a `ClientHello`. It is told of once the server has answered, or once data flow.
    pub(crate) fn client_hello(&mut self, hello: ClientHello, direction: Direction) -> bool {
        self.client = Some(direction);
        // The server's hello may be seen first, where packets were captured out of order.
        let late = self.greeting.is_none() && matches!(self.phase, Phase::Agreeing | Phase::Flights(_));
        let renewed = self.greeting.replace(hello);
        if late {
            return self.greeting != renewed;
        }
        self.server = None;
        self.keys = [Keys::Clear; 2];
        self.phase = Phase::Greeting;
        self.told = false;
        false
    }

    fn server_hello(&mut self, hello: ServerHello, direction: Direction, time_ns: i64) -> bool {
        self.client = Some(direction.reversed());
        if hello.retry {
            return false;
        }
        if !matches!(self.phase, Phase::Greeting) {
            // Of the client's hello, if there was one, nothing is known.
            self.greeting = None;
            self.keys = [Keys::Clear; 2];
        }
        let protection = Protection::of(hello);
        if is_1_3(hello.version) {
            let early_data = self.greeting.as_ref().is_some_and(|greeting| greeting.early_data);
            let added = if let Protection::Added(added) = protection { added } else { 17 };
            self.keys = [Keys::Known { protection, finished: false }; 2];
            self.phase = Phase::Flights(Box::new(Flights::new(hello, added, early_data, time_ns)));
        } else {
            for keys in self.keys.iter_mut().filter(|keys| **keys == Keys::Early) {
                *keys = Keys::Known { protection, finished: false };
            }
            self.phase = Phase::Agreeing;
        }
        self.server = Some(hello);
        self.told = true;
        true
    }

    /// What a record is, by the state of the session, which it moves on.
    pub(crate) fn record(&mut self, header: Header, direction: Direction, time_ns: i64) -> Marks {
        let handshake = match header.content_type {
            ContentType::ChangeCipherSpec | ContentType::Handshake => true,
            ContentType::Alert | ContentType::Heartbeat => self.is_agreeing(),
            ContentType::ApplicationData => self.is_flight(header, direction, time_ns),
        };
        let marks = Marks { plaintext: self.plaintext(header, direction), handshake };
        self.move_on(header, direction);
        marks
    }

    /// Whether data flow though no server's hello was seen: what the client's told is all there will be.
    pub(crate) fn is_untold(&mut self, header: Header) -> bool {
        let untold = !self.told && self.greeting.is_some() && header.content_type == ContentType::ApplicationData;
        self.told |= untold;
        untold
    }

    /// The session as it is told.
    pub(crate) fn tell(&self, flow: u64, time_ns: i64) -> Told {
        Told {
            time_ns,
            flow,
            server_name: self.greeting.as_ref().and_then(|greeting| greeting.server_name.as_deref().map(str::to_owned)),
            tls_version: self.server.map(|server| version_name(server.version)),
            cipher_suite: self.server.map(|server| suite_name(server.cipher_suite)),
        }
    }

    fn is_agreeing(&self) -> bool {
        match &self.phase {
            Phase::Greeting | Phase::Agreeing => true,
            Phase::Flights(flights) => flights.is_open(),
            Phase::Unknown | Phase::Agreed => false,
        }
    }

    /// Whether application data are none: TLS 1.3 hides its handshake in them.
    fn is_flight(&mut self, header: Header, direction: Direction, time_ns: i64) -> bool {
        let end = if self.client == Some(direction) { End::Client } else { End::Server };
        match &mut self.phase {
            Phase::Flights(flights) => flights.takes(end, header.length, time_ns),
            _ => false,
        }
    }

    fn plaintext(&self, header: Header, direction: Direction) -> Option<[u64; 2]> {
        let is_data = header.content_type == ContentType::ApplicationData;
        match self.keys(direction) {
            Keys::Clear if !is_data => Some(exactly(header.length)),
            Keys::Known { .. } if self.is_1_3() && !is_data => Some(exactly(header.length)),
            Keys::Known { protection, .. } => protection.plaintext(header.length),
            Keys::Unknown | Keys::Early | Keys::Clear => None,
        }
    }

    fn move_on(&mut self, header: Header, direction: Direction) {
        if self.is_1_3() {
            return;
        }
        let protection = self.server.map(Protection::of);
        let keys = self.keys_mut(direction);
        match (header.content_type, *keys) {
            (ContentType::ChangeCipherSpec, Keys::Clear) => {
                *keys = match protection {
                    Some(protection) => Keys::Known { protection, finished: false },
                    None => Keys::Early,
                };
            }
            // Keys are renewed under cover of the old ones: what suite they are for cannot be seen.
            (ContentType::ChangeCipherSpec, Keys::Known { .. }) => *keys = Keys::Unknown,
            (ContentType::Handshake, Keys::Known { protection, finished: false }) => {
                *keys = Keys::Known { protection, finished: true };
                if self.keys.iter().all(|keys| matches!(keys, Keys::Known { finished: true, .. })) {
                    self.phase = Phase::Agreed;
                }
            }
            _ => {}
        }
    }

    fn is_1_3(&self) -> bool {
        self.server.is_some_and(|server| is_1_3(server.version))
    }

    fn keys(&self, direction: Direction) -> Keys {
        let [to_gateway, from_gateway] = self.keys;
        if direction == Direction::ToGateway { to_gateway } else { from_gateway }
    }

    fn keys_mut(&mut self, direction: Direction) -> &mut Keys {
        let [to_gateway, from_gateway] = &mut self.keys;
        if direction == Direction::ToGateway { to_gateway } else { from_gateway }
    }
}

fn version_name(version: u16) -> String {
    match version {
        0x0002 => "SSL 2.0".into(),
        0x0300 => "SSL 3.0".into(),
        0x0301 => "TLS 1.0".into(),
        0x0302 => "TLS 1.1".into(),
        0x0303 => "TLS 1.2".into(),
        0x0304 => "TLS 1.3".into(),
        0x7f00..=0x7fff => format!("TLS 1.3 draft {}", version & 0xff),
        0x0100 | 0xfeff => "DTLS 1.0".into(),
        0xfefd => "DTLS 1.2".into(),
        0xfefc => "DTLS 1.3".into(),
        other => format!("{other:#06x}"),
    }
}

fn suite_name(suite: u16) -> String {
    TlsCipherSuite::from_id(suite).map_or_else(|| format!("{suite:#06x}"), |suite| suite.name.to_owned())
}
