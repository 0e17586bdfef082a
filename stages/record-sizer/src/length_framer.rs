//! Follows a declared framing through a stream: from header to header, by the lengths in them.
//!
//! Where it is not in step, at the start and behind losses, it waits for a segment that begins with a whole
//! message.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, Protocol};

use crate::chunk::Chunk;
use crate::framing::{self, Framing};
use crate::matter::{self, MatterFlow};
use crate::message::{FlowEvent, Found, Message, MessageFramer};
use crate::per_direction::PerDirection;

/// Both directions of a connection with such messages.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LengthFramer {
    framing: Framing,
    is_reported: bool,
    places: PerDirection<Place>,
    /// Whether no message was seen yet of a direction whose start is known: the first one follows what comes before.
    awaits_first: PerDirection<bool>,
    /// Bytes since it was in step.
    skipped: PerDirection<u64>,
    /// What reads the headers of Matter's messages behind their lengths.
    matter: Option<MatterFlow>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
enum Place {
    #[default]
    Lost,
    Within(OpenMessage),
}

/// A message that is not complete, perhaps not begun.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct OpenMessage {
    start_ns: i64,
    /// The first bytes: the header, and what is read behind it.
    #[serde(with = "serde_bytes")]
    head: Vec<u8>,
    /// The bytes of the whole message, once its header is whole.
    whole: Option<u64>,
    have: u64,
}

impl LengthFramer {
    /// Follows this framing. Directions of which the first byte is known begin with a message, unless something else
    /// comes before.
    pub(crate) fn new(framing: Framing, from_start: PerDirection<bool>) -> Box<Self> {
        let place = |is_start: bool| if is_start { Place::Within(OpenMessage::default()) } else { Place::Lost };
        let places = PerDirection {
            to_gateway: place(from_start.to_gateway && framing.begins.is_none()),
            from_gateway: place(from_start.from_gateway && framing.begins.is_none()),
        };
        let skipped = PerDirection::default();
        Box::new(Self { framing, is_reported: false, places, awaits_first: from_start, skipped, matter: None })
    }

    pub(crate) fn matter(ports: Vec<u16>, from_start: PerDirection<bool>) -> Box<Self> {
        Box::new(Self { matter: Some(MatterFlow::default()), ..*Self::new(framing::matter(ports), from_start) })
    }

    fn head_bytes(&self) -> usize {
        self.framing.header + if self.matter.is_some() { matter::LONGEST_HEADER } else { 0 }
    }

    pub(crate) fn is_inside_message(&self, direction: Direction) -> bool {
        matches!(self.places.of(direction), Place::Within(open) if open.have > 0)
    }

    /// Bytes of a direction that belong to no message, since it was in step.
    pub(crate) fn skipped(&self, direction: Direction) -> u64 {
        *self.skipped.of(direction)
    }

    /// Whether a message begins with a segment. Before the first one comes text, whose bytes are no length.
    fn is_in_step(&self, direction: Direction, chunk: &Chunk<'_>) -> bool {
        self.framing.is_in_step(chunk.payload, chunk.length())
            || *self.awaits_first.of(direction)
                && self.framing.begins.is_some()
                && self.framing.may_begin(chunk.payload)
    }

    /// The message whose last byte has come; `None` if it is a repetition or cannot be one.
    fn complete(&mut self, open: &OpenMessage, time_ns: i64, direction: Direction) -> Option<Message> {
        let length = open.have.saturating_sub(self.framing.header as u64) as u32;
        // All times may have gone back meanwhile.
        let times = [open.start_ns.min(time_ns), time_ns];
        if let Some(matter) = &mut self.matter {
            let header = matter::Header::read(open.head.get(self.framing.header..)?)?;
            return matter.message(header, length, Message::data(Protocol::Matter, direction, times, 0));
        }
        let without = |overhead: u32| u64::from(length).saturating_sub(overhead.into());
        let plaintext = self.framing.overhead.map(|[least, most]| [without(most), without(least)]);
        Some(Message { plaintext, ..Message::data(Protocol::Framing, direction, times, length) })
    }

    /// Takes bytes up to the end of a message, or of the chunk. False if they are no message.
    fn step(&mut self, open: &mut OpenMessage, chunk: &mut Chunk<'_>, direction: Direction, found: &mut Found) -> bool {
        if open.have == 0 {
            open.start_ns = chunk.time_ns;
        }
        let wanted = open.whole.map_or(self.framing.header as u64, |whole| whole.min(self.head_bytes() as u64));
        if open.have < wanted {
            let (bytes, taken) = chunk.advance(wanted - open.have);
            open.head.extend_from_slice(bytes);
            open.have += taken;
            // Hidden bytes of a header say nothing.
            if open.head.len() as u64 != open.have {
                return false;
            }
            if open.whole.is_none() && open.have == wanted {
                let Some(body) = self.framing.body_length(&open.head) else { return false };
                open.whole = Some(wanted + u64::from(body));
            }
        } else if let Some(whole) = open.whole {
            open.have += chunk.advance(whole - open.have).1;
        }
        if open.whole == Some(open.have) {
            let open = std::mem::take(open);
            match self.complete(&open, chunk.time_ns, direction) {
                Some(message) => {
                    *self.awaits_first.of_mut(direction) = false;
                    found.session_once(&mut self.is_reported, message.time_ns, &self.framing.name);
                    found.message(message);
                }
                None => found.repeated += 1,
            }
        }
        true
    }
}

impl MessageFramer for LengthFramer {
    fn take(&mut self, direction: Direction, mut chunk: Chunk<'_>, found: &mut Found) -> bool {
        let (length, head_bytes) = (chunk.payload.len(), self.head_bytes());
        while !chunk.is_empty() {
            let mut open = match std::mem::take(self.places.of_mut(direction)) {
                Place::Within(open) => open,
                Place::Lost if chunk.starts_segment && self.is_in_step(direction, &chunk) => {
                    let skipped = std::mem::take(self.skipped.of_mut(direction));
                    if skipped > 0 {
                        found.events.push(FlowEvent::Skipped(skipped));
                    }
                    OpenMessage::default()
                }
                Place::Lost => {
                    if !*self.awaits_first.of(direction) {
                        *self.skipped.of_mut(direction) += chunk.length();
                    }
                    return false;
                }
            };
            let start = length - chunk.payload.len();
            if open.have < head_bytes as u64 {
                let end = start + chunk.payload.len().min(head_bytes - open.have as usize);
                found.read.push(start..end);
            }
            if !self.step(&mut open, &mut chunk, direction, found) {
                found.events.push(FlowEvent::Malformed);
                *self.skipped.of_mut(direction) += chunk.length();
                return false;
            }
            *self.places.of_mut(direction) = Place::Within(open);
        }
        true
    }

    fn gap(&mut self, direction: Direction, bytes: u64) {
        let head_bytes = self.head_bytes() as u64;
        let place = self.places.of_mut(direction);
        let skips = |open: &OpenMessage| {
            let whole = open.whole.unwrap_or(0);
            bytes > 0 && open.have >= whole.min(head_bytes) && open.have.saturating_add(bytes) < whole
        };
        match place {
            Place::Within(open) if skips(open) => open.have += bytes,
            _ => *place = Place::Lost,
        }
    }
}
