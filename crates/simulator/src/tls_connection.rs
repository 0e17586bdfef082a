//! The messages of a connection as they are seen: as packets of a TCP connection with a TLS session inside, or, without
//! packets, as the frames of commands that a segmenter finds where nothing misleads it.

use std::net::SocketAddr;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use sizeleak_frame::{
    Command, Flow, Frame, FrameWriter, Hello, MAX_SINGLE_REPLIES, SCHEMA, SingleReply, StageSummary, Summary, Transport,
};

use crate::SimulateError;
use crate::application::{Message, MessageRole};
use crate::network::{Hosts, SimulatedPacket, TcpConnection, TcpRoute};
use crate::random_streams::MILLISECOND;
use crate::scenario::TlsSettings;
use crate::schedule::PlannedConnection;
use crate::tls::{ServerIdentity, Side, TlsSession, record_lengths, wire_lengths};

#[derive(Debug, Clone, Copy)]
pub(crate) struct SentMessage {
    pub(crate) role: MessageRole,
    /// Time of its first segment and of its last.
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    pub(crate) plaintext_size: usize,
    /// Sum of its records' lengths, as in their headers.
    pub(crate) wire_size: usize,
    pub(crate) records: usize,
}

impl SentMessage {
    /// A message as it would be sent at its time, all at once.
    pub(crate) fn without_packets(message: &Message, tls: TlsSettings) -> Self {
        let lengths = wire_lengths(tls, message.bytes.len(), &message.record_padding);
        Self::new(message, (message.time_ns, message.time_ns), &lengths)
    }

    fn new(message: &Message, (first_ns, last_ns): (i64, i64), lengths: &[usize]) -> Self {
        Self {
            role: message.role,
            first_ns,
            last_ns,
            plaintext_size: message.bytes.len() + message.record_padding.iter().sum::<usize>(),
            wire_size: lengths.iter().sum(),
            records: lengths.len(),
        }
    }
}

/// A connection after both handshakes.
#[derive(Debug)]
pub(crate) struct TlsConnection<'a> {
    session: TlsSession,
    tcp: TcpConnection<'a>,
    route: TcpRoute<'a>,
    /// The earliest time of a message.
    pub(crate) ready_ns: i64,
    /// What both ends sent until then.
    pub(crate) handshake: Vec<(Side, Vec<u8>)>,
}

impl<'a> TlsConnection<'a> {
    /// Opens a connection in which TLS negotiates `protocol`, with randomness for TLS and for TCP.
    pub(crate) fn open(
        route: TcpRoute<'a>,
        identity: &ServerIdentity,
        tls: TlsSettings,
        protocol: &str,
        open_ns: i64,
        [tls_random, mut tcp_random]: [ChaCha20Rng; 2],
    ) -> Result<Self, SimulateError> {
        let mut delays: Vec<i64> = (0..8).map(|_| tcp_random.random_range(MILLISECOND / 2..3 * MILLISECOND)).collect();
        let (mut tcp, mut time_ns) = TcpConnection::open(route, open_ns, tcp_random)?;
        let mut session = TlsSession::new(identity, tls, protocol, open_ns, tls_random)?;
        let handshake = session.handshake()?;
        for (side, flight) in &handshake {
            let (_, last_ns) = tcp.write(time_ns, *side, flight)?;
            time_ns = last_ns + route.turnaround(side.peer()) + delays.pop().unwrap_or(MILLISECOND);
        }
        Ok(Self { session, tcp, route, ready_ns: time_ns, handshake })
    }

    /// Sends a message, which is not earlier than any before. Returns its records, too.
    pub(crate) fn send(&mut self, message: &Message) -> Result<(SentMessage, Vec<u8>), SimulateError> {
        let records = self.session.seal(message.side, &message.bytes, &message.record_padding)?;
        let times = self.tcp.write(message.time_ns, message.side, &records)?;
        Ok((SentMessage::new(message, times, &record_lengths(&records)), records))
    }

    /// The packets until a time that were not yet taken, in order of time.
    pub(crate) fn take_packets(&mut self, until_ns: i64) -> Result<Vec<SimulatedPacket>, SimulateError> {
        self.tcp.take_packets(until_ns)
    }

    /// Sends messages, which are in order of time, and closes the connection after `close_ns`. Returns all packets.
    pub(crate) fn carry(
        mut self,
        messages: &[Message],
        close_ns: i64,
    ) -> Result<(Vec<SimulatedPacket>, Vec<SentMessage>), SimulateError> {
        let mut sent = Vec::with_capacity(messages.len());
        let mut end_ns = close_ns;
        for message in messages {
            let (message, _) = self.send(message)?;
            end_ns = end_ns.max(message.last_ns);
            sent.push(message);
        }
        for side in [Side::Client, Side::Server] {
            let alert = self.session.close(side)?;
            end_ns += self.route.turnaround(side) + MILLISECOND;
            self.tcp.write(end_ns, side, &alert)?;
            self.tcp.finish(end_ns, side)?;
        }
        Ok((self.tcp.take_packets(i64::MAX)?, sent))
    }
}

/// The stages that the stream is taken to come from, so that a pipeline goes on behind the segmenter.
const STAGE: &str = "command-segmenter";
const UPSTREAM: &str = "simulator";

/// The flow of a connection between hosts, with the commands that were sent in it; dummies too, as they look like
/// others.
pub(crate) fn flow_frames(
    index: u32,
    connection: &PlannedConnection,
    sent: &[SentMessage],
    hosts: &Hosts,
    port: u16,
) -> impl Iterator<Item = Frame> {
    let flow = u64::from(index) + 1;
    let service = SocketAddr::new(hosts.service.address, port);
    let mut commands: Vec<(Command, Vec<SingleReply>)> = vec![Default::default(); connection.commands.len()];
    for message in sent {
        let (size, records) = (message.wire_size as u64, message.records as u32);
        match message.role {
            MessageRole::Command(at) => {
                if let Some((command, _)) = commands.get_mut(at) {
                    let (time_ns, end_ns) = (message.first_ns, message.last_ns);
                    *command = Command { time_ns, end_ns, flow, size, records, ..Command::default() };
                }
            }
            MessageRole::Reply(at) => {
                if let Some((command, replies)) = commands.get_mut(at) {
                    command.replies += records;
                    command.reply_bytes += size;
                    let after_ns = message.first_ns.saturating_sub(command.time_ns).unsigned_abs();
                    replies.push(SingleReply { after_ns, length: message.wire_size as u32 });
                }
            }
            MessageRole::Other => {}
        }
    }
    let ends = Flow::new(flow, hosts.gateway.address, service, Transport::Tcp);
    let commands = commands.into_iter().map(|(command, replies)| {
        let single_replies = replies.into_iter().take(MAX_SINGLE_REPLIES).collect();
        Command { single_replies, ..command }.into()
    });
    std::iter::once(ends.into()).chain(commands)
}

pub(crate) fn frame_stream(flows: &[Frame]) -> Result<Vec<u8>, SimulateError> {
    let sizes = || {
        flows.iter().filter_map(|frame| match frame {
            Frame::Command(command) => Some(command.size),
            _ => None,
        })
    };
    let (stage, version) = (STAGE.to_owned(), env!("CARGO_PKG_VERSION").into());
    let (frames_out, bytes_in) = (sizes().count() as u64, sizes().sum());
    let summary = StageSummary { stage: stage.clone(), frames_out, bytes_in, ..StageSummary::default() };
    let hello = Hello { schema: SCHEMA, stage, version, upstream: vec![UPSTREAM.into()] };
    let mut writer = FrameWriter::new(Vec::new());
    let written = writer
        .write(&hello.into())
        .and_then(|()| writer.write_all(flows))
        .and_then(|()| writer.write(&Summary { stages: vec![summary] }.into()));
    written.and_then(|()| writer.into_output()).map_err(SimulateError::encoding("a frame"))
}
