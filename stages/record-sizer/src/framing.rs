//! Framings that are declared: messages over TCP that begin with a header in the clear, which holds their length. And
//! what follows one through a stream, from header to header. Where that is not in step, at the start and behind losses,
//! it waits for a segment that begins with a whole message.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, PerDirection, Protocol};
use sizeleak_platform::runtime::ConfigureError;

use crate::chunk::Chunk;
use crate::findings::Incident;
use crate::matter::{self, MatterFlow};
use crate::message::{Found, Message};

const LONGEST_HEADER: usize = 64;

/// The greatest length of a message, if none is declared: as much as a sender may write at once.
const LONGEST: u32 = 1 << 20;

/// How probable it may be that random bytes look like the lengths of messages that end behind their segment.
const BY_CHANCE: f64 = 1.0 / 2048.0;

/// How the messages of a protocol over TCP are framed.
// Each field is written, also where it says nothing: it is part of a state, which has no names of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Framing {
    /// Its name: the protocol of its sessions.
    pub name: String,
    /// Ports of connections that carry it, of either end.
    pub port: Vec<u16>,
    /// The text that a connection with it begins with, before the first message.
    pub begins: Option<String>,
    /// The bytes that each message begins with, in hexadecimal digits.
    #[schemars(with = "String")]
    pub prefix: Prefix,
    /// Bytes of a message before the length.
    pub length_at: usize,
    /// Bytes of the length, from 1 to 4.
    pub length_bytes: usize,
    /// Whether the lowest byte of the length comes first.
    pub little_endian: bool,
    /// Bytes of a message before those that the length counts.
    pub header: usize,
    /// Bytes of a message behind those that the length counts.
    pub trailer: u32,
    /// The least and the most bytes behind the header that are no plaintext: tags, initialization vectors, padding. If it
    /// is left out, nothing is known of plaintext.
    pub overhead: Option<[u32; 2]>,
    /// The greatest length.
    pub longest: Option<u32>,
}

/// Bytes as hexadecimal digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(Vec<u8>);

impl Prefix {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<String> for Prefix {
    type Error = &'static str;

    fn try_from(digits: String) -> Result<Self, Self::Error> {
        // A sign is none of them.
        let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(0..digits.len());
        let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes = all.and_then(|all| all.step_by(2).map(byte).collect::<Option<Vec<u8>>>());
        bytes.map(Self).ok_or("a prefix is written as hexadecimal digits, two for each byte")
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.0.iter().fold(Self::new(), |mut digits, byte| {
            let _written = write!(digits, "{byte:02x}");
            digits
        })
    }
}

/// The framings that need no declaration.
pub(crate) fn shipped() -> Vec<Framing> {
    // HomeKit Accessory Protocol: a pairing is verified by plain HTTP, then come frames of at most 1024 bytes with a tag.
    let homekit = Framing {
        name: "homekit".into(),
        begins: Some("POST /pair-".into()),
        length_bytes: 2,
        little_endian: true,
        header: 2,
        trailer: 16,
        overhead: Some([16, 16]),
        longest: Some(1024),
        ..Framing::default()
    };
    // Tuya's local protocol up to 3.4, and from 3.5 on. Its versions pad, check and encode in ways that no header tells.
    let tuya = Framing {
        name: "tuya".into(),
        prefix: Prefix(vec![0, 0, 0x55, 0xaa]),
        length_at: 12,
        length_bytes: 4,
        header: 16,
        longest: Some(1 << 16),
        ..Framing::default()
    };
    let tuya_35 =
        Framing { prefix: Prefix(vec![0, 0, 0x66, 0x99]), length_at: 14, header: 18, trailer: 4, ..tuya.clone() };
    vec![homekit, tuya, tuya_35]
}

/// Matter over TCP: the length of a message comes before it (Matter core specification, section 4.15.2).
pub(crate) fn matter(port: Vec<u16>) -> Framing {
    Framing { name: "matter".into(), port, length_bytes: 4, little_endian: true, header: 4, ..Framing::default() }
}

impl Framing {
    pub(crate) fn check(&self) -> Result<(), ConfigureError> {
        let fault = if self.name.is_empty() {
            "has no `name`"
        } else if self.begins.as_ref().is_some_and(String::is_empty) {
            "`begins` with nothing"
        } else if !(1..=4).contains(&self.length_bytes) {
            "needs `length-bytes` from 1 to 4"
        } else if self.header > LONGEST_HEADER || self.length_at.saturating_add(self.length_bytes) > self.header {
            "needs a `header` of at most 64 bytes that holds its length"
        } else if self.prefix.0.len() > self.header {
            "needs a `prefix` within its header"
        } else if self.overhead.is_some_and(|[least, most]| least > most) {
            "needs `overhead = [LEAST, MOST]`"
        } else if self.port.is_empty() && self.begins.is_none() && self.prefix.is_empty() {
            "needs a `port`, or what shows it: what it `begins` with, or its `prefix`"
        } else {
            return Ok(());
        };
        Err(ConfigureError::Usage(format!("the framing `{}` {fault}", self.name)))
    }

    pub(crate) fn is_shown_by(&self, payload: &[u8], length: u64) -> bool {
        self.beginning_of(payload).is_some() || !self.prefix.is_empty() && self.is_in_step(payload, length)
    }

    pub(crate) fn beginning_of<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        let text = self.begins.as_ref()?;
        payload.starts_with(text.as_bytes()).then(|| payload.get(..text.len()))?
    }

    /// The bytes of the message behind a header; `None` if no message has it.
    pub(crate) fn body_length(&self, header: &[u8]) -> Option<u32> {
        if !header.starts_with(&self.prefix.0) {
            return None;
        }
        let field = header.get(self.length_at..self.length_at + self.length_bytes)?;
        let add = |length: u32, byte: &u8| length << 8 | u32::from(*byte);
        let length = if self.little_endian { field.iter().rev().fold(0, add) } else { field.iter().fold(0, add) };
        (length <= self.longest.unwrap_or(LONGEST)).then(|| length.saturating_add(self.trailer))
    }

    /// Whether messages show that they begin with a segment of `length` bytes, of which `payload` was captured: whole ones
    /// fill it, or what goes on in the next segment has a prefix, or is behind whole ones whose lengths random bytes have
    /// with less than [`BY_CHANCE`].
    pub(crate) fn is_in_step(&self, mut payload: &[u8], length: u64) -> bool {
        let (mut left, mut has_whole) = (length, false);
        let mut chance = if self.prefix.is_empty() { 1.0 } else { 0.0 };
        let share = |most: u64| {
            let lengths = most.min(self.longest.unwrap_or(LONGEST).into()) as f64 + 1.0;
            (lengths / (1u64 << (8 * self.length_bytes)) as f64).min(1.0)
        };
        while let Some(body) = payload.get(..self.header).and_then(|header| self.body_length(header)) {
            let whole = self.header as u64 + u64::from(body);
            match left.checked_sub(whole) {
                None => return chance * share(u64::MAX) < BY_CHANCE,
                Some(0) => return true,
                Some(rest) => {
                    chance *= share(left);
                    left = rest;
                }
            }
            has_whole = true;
            payload = payload.get(whole as usize..).unwrap_or_default();
        }
        // The segment ends within a header.
        let is_cut = payload.len() < self.header && payload.len() as u64 == left;
        let begins = self.prefix.0.iter().zip(payload).all(|(expected, byte)| expected == byte);
        has_whole && is_cut && begins && chance < BY_CHANCE
    }
}

/// An option value: TOML's inline table without its braces, or with them.
impl std::str::FromStr for Framing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let keys = text.trim().trim_start_matches('{').trim_end_matches('}');
        let table: toml::Table =
            toml::from_str(&format!("framing = {{ {keys} }}")).map_err(|error| error.message().to_owned())?;
        let framing = table.get("framing").cloned().unwrap_or(toml::Value::Table(toml::Table::new()));
        framing.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }
}

/// Both directions of a connection with such messages.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LengthFramer {
    framing: Framing,
    is_reported: bool,
    /// The message that comes next or is not complete; `None` where it is not in step.
    places: PerDirection<Option<OpenMessage>>,
    /// Whether no message was seen yet of a direction whose start is known: the first one follows what comes before.
    awaits_first: PerDirection<bool>,
    /// Bytes since it was in step.
    skipped: PerDirection<u64>,
    /// What reads the headers of Matter's messages behind their lengths.
    matter: Option<MatterFlow>,
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
        let begins = |is_start: bool| (is_start && framing.begins.is_none()).then(OpenMessage::default);
        let places = from_start.map(begins);
        let skipped = PerDirection::default();
        Box::new(Self { framing, is_reported: false, places, awaits_first: from_start, skipped, matter: None })
    }

    pub(crate) fn matter(ports: Vec<u16>, from_start: PerDirection<bool>) -> Box<Self> {
        Box::new(Self { matter: Some(MatterFlow::default()), ..*Self::new(matter(ports), from_start) })
    }

    fn head_bytes(&self) -> usize {
        self.framing.header + if self.matter.is_some() { matter::LONGEST_HEADER } else { 0 }
    }

    pub(crate) fn is_inside_message(&self, direction: Direction) -> bool {
        self.places.of(direction).as_ref().is_some_and(|open| open.have > 0)
    }

    pub(crate) fn skipped(&self, direction: Direction) -> u64 {
        *self.skipped.of(direction)
    }

    /// Whether a message begins with a segment. Before the first one comes text, whose bytes are no length.
    fn is_in_step(&self, direction: Direction, chunk: &Chunk<'_>) -> bool {
        let has_header = || {
            chunk.payload.get(..self.framing.header).is_some_and(|header| self.framing.body_length(header).is_some())
        };
        self.framing.is_in_step(chunk.payload, chunk.length())
            || *self.awaits_first.of(direction) && self.framing.begins.is_some() && has_header()
    }

    fn complete(&mut self, open: &OpenMessage, time_ns: i64, direction: Direction, found: &mut Found) {
        let length = open.have.saturating_sub(self.framing.header as u64) as u32;
        // All times may have gone back meanwhile.
        let times = [open.start_ns.min(time_ns), time_ns];
        let message = if let Some(matter) = &mut self.matter {
            let header = open.head.get(self.framing.header..).and_then(matter::Header::read);
            let Some(header) = header.filter(|header| header.sizes(length).is_some()) else {
                // Bytes with a length that are no message.
                *self.skipped.of_mut(direction) += open.have;
                return;
            };
            let Some(new) = matter.message(header, length, Message::data(Protocol::Matter, direction, times, 0)) else {
                found.repeated += 1;
                return;
            };
            new
        } else {
            let without = |overhead: u32| u64::from(length).saturating_sub(overhead.into());
            let plaintext = self.framing.overhead.map(|[least, most]| [without(most), without(least)]);
            Message { plaintext, ..Message::data(Protocol::Framing, direction, times, length) }
        };
        *self.awaits_first.of_mut(direction) = false;
        found.session_once(&mut self.is_reported, message.time_ns, &self.framing.name);
        found.message(message);
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
            self.complete(&open, chunk.time_ns, direction, found);
        }
        true
    }

    /// Takes the next bytes of a direction; adds to `incidents` where they are not in step, or are again.
    pub(crate) fn take(
        &mut self,
        direction: Direction,
        mut chunk: Chunk<'_>,
        found: &mut Found,
        incidents: &mut Vec<Incident>,
    ) {
        let (length, head_bytes) = (chunk.payload.len(), self.head_bytes());
        while !chunk.is_empty() {
            let mut open = match self.places.of_mut(direction).take() {
                Some(open) => open,
                None if chunk.starts_segment && self.is_in_step(direction, &chunk) => {
                    let skipped = std::mem::take(self.skipped.of_mut(direction));
                    if skipped > 0 {
                        incidents.push(Incident::Resync { skipped });
                    }
                    OpenMessage::default()
                }
                None => {
                    // Zeroes in their place would be a length.
                    if chunk.starts_segment && self.framing.prefix.is_empty() {
                        let start = length - chunk.payload.len();
                        found.read.push(start..length.min(start + self.framing.header));
                    }
                    if !*self.awaits_first.of(direction) {
                        *self.skipped.of_mut(direction) += chunk.length();
                    }
                    return;
                }
            };
            let start = length - chunk.payload.len();
            if open.have < head_bytes as u64 {
                let end = start + chunk.payload.len().min(head_bytes - open.have as usize);
                found.read.push(start..end);
            }
            if !self.step(&mut open, &mut chunk, direction, found) {
                incidents.push(Incident::Malformed);
                *self.skipped.of_mut(direction) += chunk.length();
                return;
            }
            *self.places.of_mut(direction) = Some(open);
        }
    }

    /// Passes over missing bytes; zero stands for an unknown number.
    pub(crate) fn gap(&mut self, direction: Direction, bytes: u64) {
        let head_bytes = self.head_bytes() as u64;
        let skips = |open: &OpenMessage| {
            let whole = open.whole.unwrap_or(0);
            bytes > 0 && open.have >= whole.min(head_bytes) && open.have.saturating_add(bytes) < whole
        };
        match self.places.of_mut(direction) {
            Some(open) if skips(open) => open.have += bytes,
            place => *place = None,
        }
    }
}
