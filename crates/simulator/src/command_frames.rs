//! Commands as frames, without the packets that would carry them.

use std::net::SocketAddr;

use sizeleak_frame::{Command, Flow, Frame, FrameWriter, Hello, SCHEMA, SingleReply, StageSummary, Summary, Transport};

use crate::SimulateError;
use crate::application::MessageRole;
use crate::network::Hosts;
use crate::schedule::PlannedConnection;
use crate::tls_connection::SentMessage;

/// The stages that the stream is taken to come from, so that a pipeline goes on behind the segmenter.
const STAGE: &str = "command-segmenter";
const UPSTREAM: &str = "simulator";

/// Collects the commands of connections, as a segmenter finds them where nothing misleads it.
#[derive(Debug)]
pub(crate) struct CommandFrames {
    frames: Vec<Frame>,
    commands: u64,
    bytes: u64,
    gateway: std::net::IpAddr,
    service: SocketAddr,
}

impl CommandFrames {
    pub(crate) fn new(hosts: &Hosts, port: u16) -> Self {
        let hello = Hello {
            schema: SCHEMA,
            stage: STAGE.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            upstream: vec![UPSTREAM.into()],
        };
        let (gateway, service) = (hosts.gateway.address, SocketAddr::new(hosts.service.address, port));
        Self { frames: vec![hello.into()], commands: 0, bytes: 0, gateway, service }
    }

    /// Adds the commands of a connection; dummies too, as they look like others.
    pub(crate) fn add(&mut self, index: u32, connection: &PlannedConnection, sent: &[SentMessage]) {
        let flow = u64::from(index) + 1;
        let (gateway, service) = (self.gateway, self.service);
        let ends = Flow::new(flow, gateway, service, Transport::Tcp);
        self.frames.push(ends.into());
        let mut commands: Vec<Command> = vec![Command::default(); connection.commands.len()];
        let mut replies: Vec<Vec<SingleReply>> = vec![Vec::new(); commands.len()];
        for message in sent {
            let size = message.wire_size as u64;
            match message.role {
                MessageRole::Command(at) => {
                    if let Some(command) = commands.get_mut(at) {
                        *command = Command {
                            time_ns: message.first_ns,
                            end_ns: message.last_ns,
                            flow,
                            size,
                            records: message.records as u32,
                            ..Command::default()
                        };
                    }
                }
                MessageRole::Reply(at) => {
                    if let (Some(command), Some(replies)) = (commands.get_mut(at), replies.get_mut(at)) {
                        command.replies += message.records as u32;
                        command.reply_bytes += size;
                        let after_ns = message.first_ns.saturating_sub(command.time_ns).unsigned_abs();
                        replies.push(SingleReply { after_ns, length: message.wire_size as u32 });
                    }
                }
                MessageRole::Other => {}
            }
        }
        for (mut command, replies) in commands.into_iter().zip(replies) {
            command.single_replies = replies.into_iter().take(sizeleak_frame::MAX_SINGLE_REPLIES).collect();
            self.commands += 1;
            self.bytes += command.size;
            self.frames.push(command.into());
        }
    }

    pub(crate) fn into_stream(mut self) -> Result<Vec<u8>, SimulateError> {
        let made = StageSummary {
            stage: STAGE.into(),
            frames_out: self.commands,
            bytes_in: self.bytes,
            ..StageSummary::default()
        };
        self.frames.push(Summary { stages: vec![made] }.into());
        let mut writer = FrameWriter::new(Vec::new());
        writer.write_all(&self.frames).map_err(SimulateError::encoding("a frame"))?;
        writer.into_output().map_err(SimulateError::encoding("a frame"))
    }
}
