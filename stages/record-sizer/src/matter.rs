//! Matter: messages with a header in the clear, over UDP or TCP (Matter core specification, sections 4.4 to 4.8).
//!
//! AES-CCM keeps the length, so the size of what is encrypted is exact: the protocol header, which says what kind of
//! message it is, and its payload. A message that is sent again has the same counter and counts once.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, PerDirection, Protocol};

use crate::chunk::Chunk;
use crate::message::{FlowEnds, Found, Message};
use crate::numbered::Conversation;

/// The port of devices that are commissioned, unless they announce another.
pub(crate) const PORT: u16 = 5540;

/// The longest header without extensions: flags, session, security flags, counter, and two nodes.
pub(crate) const LONGEST_HEADER: usize = 8 + 8 + 8;

/// Bytes of the integrity value behind an encrypted message.
const TAG: u32 = 16;

/// The least protocol header: flags, opcode, exchange and protocol.
const LEAST_CONTENT: u32 = 6;

/// The content of an acknowledgement by itself: a protocol header with the counter that it is for. Nothing else has
/// this size: a message without a counter would have a payload of 4 bytes, and every payload is a structure of more.
const ACKNOWLEDGEMENT: u32 = LEAST_CONTENT + 4;

/// How many messages of a direction are known by their counters. A sender repeats a message for a few seconds (section
/// 4.12.2); no device sends a hundred messages a second for longer than that.
const KNOWN: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) length: usize,
    /// The session and the counter, which is hidden where the sender asks for privacy: equal bytes are of equal messages
    /// then too.
    identity: (u16, u32),
    is_encrypted: bool,
    /// Whether its session numbers its messages one by one, in the clear.
    is_numbered: bool,
}

impl Header {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let &[flags, s0, s1, security, c0, c1, c2, c3] = bytes.first_chunk()?;
        let (session, counter) = (u16::from_le_bytes([s0, s1]), u32::from_le_bytes([c0, c1, c2, c3]));
        let source = if flags & 0x04 == 0 { 0 } else { 8 };
        let destination = match flags & 0x03 {
            0 => 0,
            1 => 8,
            2 => 2,
            _ => return None,
        };
        // Of a session's type, two values are assigned; bits between are reserved, as are those of the flags.
        let (kind, is_group) = (security & 0x03, security & 0x03 == 1);
        if flags & 0xf8 != 0 || kind > 1 || security & 0x1c != 0 {
            return None;
        }
        // A message to a group says who sends it, and to which.
        if is_group && (source == 0 || destination == 0) {
            return None;
        }
        let fixed = 8 + source + destination;
        let length = if security & 0x20 == 0 {
            fixed
        } else {
            let &[low, high] = bytes.get(fixed..)?.first_chunk()?;
            fixed + 2 + usize::from(u16::from_le_bytes([low, high]))
        };
        // A group's messages share a counter with those of others, and privacy hides it.
        let is_numbered = session != 0 && !is_group && security & 0x80 == 0;
        Some(Self { length, identity: (session, counter), is_encrypted: session != 0 || is_group, is_numbered })
    }

    /// What a message of `length` bytes with this header is, if it can be one: its bytes behind the header, and those of
    /// its plaintext.
    pub(crate) fn sizes(self, length: u32) -> Option<(u32, u32)> {
        let body = length.checked_sub(self.length as u32)?;
        let content = body.checked_sub(if self.is_encrypted { TAG } else { 0 })?;
        (content >= LEAST_CONTENT).then_some((body, content))
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct MatterFlow {
    is_reported: bool,
    known: PerDirection<VecDeque<(u16, u32)>>,
    pub(crate) seen: Conversation,
}

impl MatterFlow {
    pub(crate) fn begin(chunk: &Chunk<'_>, ends: Option<&FlowEnds>, ports: &[u16]) -> Option<Self> {
        ends.filter(|ends| is_matter(ends, ports))?;
        Header::read(chunk.payload)?.sizes(chunk.length() as u32)?;
        Some(Self::default())
    }

    /// What a message of `length` bytes with this header is; `None` if it was seen before, or can be none.
    pub(crate) fn message(&mut self, header: Header, length: u32, at: Message) -> Option<Message> {
        let (body, content) = header.sizes(length)?;
        let known = self.known.of_mut(at.direction);
        if known.contains(&header.identity) {
            return None;
        }
        if known.len() == KNOWN {
            known.pop_front();
        }
        known.push_back(header.identity);
        let message = Message { length: body, ..at }.with_plaintext([content.into(); 2]);
        let content_type = if content == ACKNOWLEDGEMENT { ContentType::Acknowledgement } else { at.content_type };
        Some(if header.is_encrypted { Message { content_type, ..message } } else { message.as_handshake() })
    }

    pub(crate) fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        let Some(header) = Header::read(chunk.payload).filter(|header| header.sizes(chunk.length() as u32).is_some())
        else {
            return false;
        };
        found.read.push(0..header.length);
        found.session_once(&mut self.is_reported, chunk.time_ns, Protocol::Matter.name());
        let (session, counter) = header.identity;
        if header.is_numbered {
            self.seen.insert(direction, session.into(), counter.into());
        }
        let at = Message::data(Protocol::Matter, direction, [chunk.time_ns; 2], 0);
        match self.message(header, chunk.length() as u32, at) {
            Some(message) => found.message(message),
            None => found.repeated += 1,
        }
        true
    }
}

pub(crate) fn is_matter(ends: &FlowEnds, ports: &[u16]) -> bool {
    ends.has_port(PORT) || ports.iter().any(|port| ends.has_port(*port))
}
