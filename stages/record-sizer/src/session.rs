//! What is known of a flow's TLS session: who is the client, what protects the records, whether keys are being agreed.

use sizeleak_frame::{ContentType, Direction, Session as Told};
use tls_parser::TlsCipherSuite;

use crate::agreement::{Agreement, Keys};
use crate::handshake::{ClientHello, Hello, ServerHello};
use crate::plaintext::{Protection, exactly, is_1_3};
use crate::record::Header;
use crate::tls13::{End, Flights};

/// A session, or the absence of one where its handshake was not seen.
#[derive(Debug, Default)]
pub(crate) struct Session {
    agreement: Agreement,
    phase: Phase,
    client: Option<Direction>,
    /// Only as long as a handshake goes on.
    greeting: Option<Box<ClientHello>>,
    told: bool,
}

#[derive(Debug, Default)]
enum Phase {
    /// No handshake was seen, or it is over.
    #[default]
    Quiet,
    /// Hellos are exchanged.
    Greeting,
    /// Up to TLS 1.2: until both have sent their `Finished`.
    Agreeing,
    /// TLS 1.3.
    Flights(Box<Flights>),
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
        Self { agreement: Agreement::none(), ..Self::default() }
    }

    /// A session whose handshake is over, if there was any.
    pub(crate) fn after(agreement: Agreement) -> Self {
        Self { agreement, ..Self::default() }
    }

    /// What is all there is to know of it, as long as no other handshake begins; `None` while one goes on.
    pub(crate) fn agreement(&self) -> Option<Agreement> {
        (matches!(self.phase, Phase::Quiet) && self.greeting.is_none()).then_some(self.agreement)
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
        let answered = matches!(self.phase, Phase::Agreeing | Phase::Flights(_));
        if answered && self.greeting.as_deref() == Some(&hello) {
            // A datagram sent again.
            return false;
        }
        // The server's hello may be seen first, where packets were captured out of order.
        let late = self.greeting.is_none() && answered;
        let renewed = self.greeting.replace(Box::new(hello));
        if late {
            return self.greeting != renewed;
        }
        self.agreement = Agreement::none();
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
            self.agreement.keys = [Keys::Clear; 2];
        }
        let protection = Protection::of(hello);
        if is_1_3(hello.version) {
            let early_data = self.greeting.as_ref().is_some_and(|greeting| greeting.early_data);
            let added = if let Protection::Added(added) = protection { added.into() } else { 17 };
            self.agreement.keys = [Keys::Known { protection, finished: false }; 2];
            self.phase = Phase::Flights(Box::new(Flights::new(hello, added, early_data, time_ns)));
        } else {
            for keys in self.agreement.keys.iter_mut().filter(|keys| **keys == Keys::Early) {
                *keys = Keys::Known { protection, finished: false };
            }
            self.phase = Phase::Agreeing;
        }
        self.agreement.server = Some(hello);
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
        let marks = Marks { plaintext: self.agreement.plaintext(header, direction), handshake };
        self.move_on(header, direction);
        marks
    }

    /// What a record of DTLS is: its epoch tells whether it is protected, where the change to it may have been lost.
    pub(crate) fn datagram_record(&mut self, header: Header, direction: Direction, epoch: u16, time_ns: i64) -> Marks {
        let protection = self.agreement.protection();
        let keys = self.agreement.keys_mut(direction);
        match (epoch, *keys) {
            (0, Keys::Known { .. } | Keys::Early) => {
                return Marks { plaintext: Some(exactly(header.length)), handshake: true };
            }
            (1, Keys::Clear) => {
                *keys = protection.map_or(Keys::Early, |protection| Keys::Known { protection, finished: false });
            }
            // Keys were renewed, who knows to what suite.
            (2.., _) => *keys = Keys::Unknown,
            _ => {}
        }
        self.record(header, direction, time_ns)
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
            tls_version: self.agreement.server.map(|server| version_name(server.version)),
            cipher_suite: self.agreement.server.map(|server| suite_name(server.cipher_suite)),
        }
    }

    fn is_agreeing(&self) -> bool {
        match &self.phase {
            Phase::Greeting | Phase::Agreeing => true,
            Phase::Flights(flights) => flights.is_open(),
            Phase::Quiet => false,
        }
    }

    /// Whether application data are none: TLS 1.3 hides its handshake in them.
    fn is_flight(&mut self, header: Header, direction: Direction, time_ns: i64) -> bool {
        let end = if self.client == Some(direction) { End::Client } else { End::Server };
        let Phase::Flights(flights) = &mut self.phase else { return false };
        let takes = flights.takes(end, header.length, time_ns);
        if flights.are_over() {
            self.be_quiet();
        }
        takes
    }

    /// The handshake is over.
    fn be_quiet(&mut self) {
        (self.phase, self.greeting) = (Phase::Quiet, None);
    }

    fn move_on(&mut self, header: Header, direction: Direction) {
        if self.agreement.is_1_3() {
            return;
        }
        let protection = self.agreement.protection();
        let keys = self.agreement.keys_mut(direction);
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
                if self.agreement.is_finished() {
                    self.be_quiet();
                }
            }
            _ => {}
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{FromGateway, ToGateway};

    const GCM: ServerHello =
        ServerHello { version: 0x0303, cipher_suite: 0xc02f, compressed: false, encrypt_then_mac: false, retry: false };

    fn record(session: &mut Session, content_type: u8, direction: Direction, length: u16) -> (Option<u64>, bool) {
        let header = Header { content_type: ContentType::try_from(content_type).unwrap(), minor: 3, length };
        let marks = session.record(header, direction, 0);
        (marks.plaintext.map(|[least, _]| least), marks.handshake)
    }

    fn greeted() -> Session {
        let mut session = Session::from_beginning();
        assert!(!session.hello(Hello::Client(ClientHello::default()), FromGateway, 0));
        session
    }

    #[test]
    fn keys_change_one_direction_at_a_time() {
        let mut session = greeted();
        assert_eq!(record(&mut session, 22, FromGateway, 200), (Some(200), true));
        assert!(session.hello(Hello::Server(GCM), ToGateway, 0));
        assert_eq!(record(&mut session, 20, FromGateway, 1), (Some(1), true));
        assert_eq!(record(&mut session, 22, FromGateway, 40), (Some(16), true));
        assert_eq!(record(&mut session, 21, ToGateway, 2), (Some(2), true));
        assert_eq!(record(&mut session, 20, ToGateway, 1), (Some(1), true));
        assert_eq!(record(&mut session, 22, ToGateway, 40), (Some(16), true));
        assert_eq!(record(&mut session, 23, ToGateway, 124), (Some(100), false));
        assert_eq!(record(&mut session, 21, ToGateway, 26), (Some(2), false));
        // Renegotiation, to nobody knows what.
        assert_eq!(record(&mut session, 22, ToGateway, 140), (Some(116), true));
        assert_eq!(record(&mut session, 20, ToGateway, 25), (Some(1), true));
        assert_eq!(record(&mut session, 23, ToGateway, 124), (None, false));
        assert_eq!(record(&mut session, 23, FromGateway, 124), (Some(100), false));
    }

    #[test]
    fn hellos_out_of_order() {
        let mut session = Session::from_beginning();
        assert!(session.hello(Hello::Server(GCM), ToGateway, 0));
        assert_eq!(session.tell(1, 2).server_name, None);
        let named = ClientHello { server_name: Some("hub.example".into()), early_data: false };
        assert!(session.hello(Hello::Client(named), FromGateway, 0), "it tells more");
        let told = session.tell(1, 2);
        assert_eq!(told.server_name.as_deref(), Some("hub.example"));
        assert_eq!(told.cipher_suite.as_deref(), Some("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"));
    }

    #[test]
    fn a_retry_is_no_answer() {
        let mut session = greeted();
        let hello = ServerHello { version: 0x0304, cipher_suite: 0x1301, ..GCM };
        assert!(!session.hello(Hello::Server(ServerHello { retry: true, ..hello }), ToGateway, 0));
        assert!(!session.hello(Hello::Client(ClientHello::default()), FromGateway, 0));
        assert!(session.hello(Hello::Server(hello), ToGateway, 0));
        assert_eq!(record(&mut session, 20, ToGateway, 1), (Some(1), true));
        assert_eq!(record(&mut session, 23, ToGateway, 117), (Some(100), true));
    }

    #[test]
    fn without_the_servers_hello_nothing_is_known_of_data() {
        let mut session = greeted();
        let header = Header { content_type: ContentType::ApplicationData, minor: 3, length: 9 };
        assert!(session.is_untold(header));
        assert!(!session.is_untold(header));
        assert_eq!(record(&mut session, 23, FromGateway, 9), (None, false));
        assert_eq!(record(&mut Session::default(), 23, FromGateway, 9), (None, false));
    }

    #[test]
    fn epochs_of_datagrams() {
        let mut session = greeted();
        session.hello(Hello::Server(ServerHello { version: 0xfefd, ..GCM }), ToGateway, 0);
        let header = Header { content_type: ContentType::ApplicationData, minor: 3, length: 124 };
        let mut plaintext = |epoch| session.datagram_record(header, ToGateway, epoch, 0).plaintext;
        // The change of keys was lost; a record of before it comes late.
        assert_eq!((plaintext(1), plaintext(0), plaintext(1)), (Some([100; 2]), Some([124; 2]), Some([100; 2])));
        assert_eq!(plaintext(2), None);
    }

    #[test]
    fn names() {
        assert_eq!((version_name(0x7f1c), version_name(0xfefd)), ("TLS 1.3 draft 28".into(), "DTLS 1.2".into()));
        assert_eq!((version_name(0x0505), suite_name(0x1a2b)), ("0x0505".into(), "0x1a2b".into()));
    }
}
