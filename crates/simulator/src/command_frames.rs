//! Commands as frames, without the packets that would carry them, as a segmenter finds them where nothing misleads it.

use std::net::SocketAddr;

use sizeleak_frame::{
    Command, Flow, Frame, FrameWriter, Hello, MAX_SINGLE_REPLIES, SCHEMA, SingleReply, StageSummary, Summary, Transport,
};

use crate::SimulateError;
use crate::application::MessageRole;
use crate::network::Hosts;
use crate::schedule::PlannedConnection;
use crate::tls_connection::SentMessage;

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

/// The stream of all flows.
pub(crate) fn stream(flows: &[Frame]) -> Result<Vec<u8>, SimulateError> {
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
