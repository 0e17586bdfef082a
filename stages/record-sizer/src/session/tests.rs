//! Tests of `session`.

use super::*;
use Direction::{FromGateway, ToGateway};

const GCM: ServerHello = ServerHello {
    version: 0x0303,
    cipher_suite: 0xc02f,
    compressed: false,
    encrypt_then_mac: false,
    retry: false,
    connection_id: None,
};

#[derive(Default)]
struct State(SessionKeys, Negotiation);

impl State {
    fn clear() -> Self {
        Self(SessionKeys::clear(), Negotiation::default())
    }

    fn session(&mut self) -> TlsSession<'_> {
        TlsSession { keys: &mut self.0, negotiation: &mut self.1 }
    }
}

fn record(state: &mut State, content_type: u8, direction: Direction, length: u16) -> (Option<u64>, bool) {
    let header = Header { content_type: ContentType::try_from(content_type).unwrap(), minor: 3, length };
    let details = state.session().record(header, direction, 0);
    (details.plaintext.map(|[least, _]| least), details.handshake)
}

fn after_client_hello() -> State {
    let mut state = State::clear();
    assert!(!state.session().hello(Hello::Client(ClientHello::default()), FromGateway, 0));
    state
}

#[test]
fn keys_change_one_direction_at_a_time() {
    let mut state = after_client_hello();
    assert_eq!(record(&mut state, 22, FromGateway, 200), (Some(200), true));
    assert!(state.session().hello(Hello::Server(GCM), ToGateway, 0));
    assert_eq!(record(&mut state, 20, FromGateway, 1), (Some(1), true));
    assert_eq!(record(&mut state, 22, FromGateway, 40), (Some(16), true));
    assert_eq!(record(&mut state, 21, ToGateway, 2), (Some(2), true));
    assert_eq!(record(&mut state, 20, ToGateway, 1), (Some(1), true));
    assert_eq!(record(&mut state, 22, ToGateway, 40), (Some(16), true));
    assert_eq!(record(&mut state, 23, ToGateway, 124), (Some(100), false));
    assert_eq!(record(&mut state, 21, ToGateway, 26), (Some(2), false));
    // Renegotiation, to an unknown suite.
    assert_eq!(record(&mut state, 22, ToGateway, 140), (Some(116), true));
    assert_eq!(record(&mut state, 20, ToGateway, 25), (Some(1), true));
    assert_eq!(record(&mut state, 23, ToGateway, 124), (None, false));
    assert_eq!(record(&mut state, 23, FromGateway, 124), (Some(100), false));
}

#[test]
fn client_hello_after_the_servers_completes_the_report() {
    let mut state = State::clear();
    assert!(state.session().hello(Hello::Server(GCM), ToGateway, 0));
    assert_eq!(state.session().frame(1, 2, Protocol::Tls).server_name, None);
    let named = ClientHello { server_name: Some("hub.example".into()), ..ClientHello::default() };
    assert!(state.session().hello(Hello::Client(named), FromGateway, 0), "it brings the name");
    let frame = state.session().frame(1, 2, Protocol::Tls);
    assert_eq!(frame.server_name.as_deref(), Some("hub.example"));
    assert_eq!(frame.cipher_suite.as_deref(), Some("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"));
}

#[test]
fn hello_retry_request_does_not_answer_the_client() {
    let mut state = after_client_hello();
    let hello = ServerHello { version: 0x0304, cipher_suite: 0x1301, ..GCM };
    assert!(!state.session().hello(Hello::Server(ServerHello { retry: true, ..hello }), ToGateway, 0));
    assert!(!state.session().hello(Hello::Client(ClientHello::default()), FromGateway, 0));
    assert!(state.session().hello(Hello::Server(hello), ToGateway, 0));
    assert_eq!(record(&mut state, 20, ToGateway, 1), (Some(1), true));
    assert_eq!(record(&mut state, 23, ToGateway, 117), (Some(100), true));
}

#[test]
fn data_without_a_server_hello_have_no_plaintext_size() {
    let mut state = after_client_hello();
    let header = Header { content_type: ContentType::ApplicationData, minor: 3, length: 9 };
    assert!(state.session().starts_unanswered(header));
    assert!(!state.session().starts_unanswered(header));
    assert_eq!(record(&mut state, 23, FromGateway, 9), (None, false));
    assert_eq!(record(&mut State::default(), 23, FromGateway, 9), (None, false));
}

#[test]
fn dtls_epoch_shows_which_records_are_protected() {
    let mut state = after_client_hello();
    state.session().hello(Hello::Server(ServerHello { version: 0xfefd, ..GCM }), ToGateway, 0);
    let header = Header { content_type: ContentType::ApplicationData, minor: 3, length: 124 };
    let mut plaintext = |epoch| state.session().dtls_record(header, ToGateway, (epoch, false), 0).plaintext;
    // The change of keys was lost; an earlier record comes late.
    assert_eq!((plaintext(1), plaintext(0), plaintext(1)), (Some([100; 2]), Some([124; 2]), Some([100; 2])));
    assert_eq!(plaintext(2), None);
}

#[test]
fn versions_and_suites_have_names() {
    assert_eq!((version_name(0x7f1c), version_name(0xfefd)), ("TLS 1.3 draft 28".into(), "DTLS 1.2".into()));
    assert_eq!((version_name(0x0505), suite_name(0x1a2b)), ("0x0505".into(), "0x1a2b".into()));
}
