//! A connection in its steady state: no handshake goes on, each direction is in step with its records, and nothing waits.
//!
//! Most connections are so nearly always. So this is small, and has a way of its own for segments that come in order and
//! hold data. Whatever else comes is for a [`Connection`](crate::connection::Connection), which it is made into for as long
//! as that takes.

use sizeleak_frame::{ContentType, Direction, Segment};

use crate::agreement::Agreement;
use crate::piece::Piece;
use crate::reassembly::{Beginning, Position};
use crate::record::{Begun, Header, Sized, Walker};
use crate::session::Marks;

/// The state of a connection, in 88 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steady {
    to_gateway: SteadyStream,
    from_gateway: SteadyStream,
    agreement: Agreement,
}

/// One direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SteadyStream {
    /// When the last of what is in order was captured.
    latest_ns: i64,
    /// When the record that has begun was, if one has.
    start_ns: i64,
    next: u32,
    begins: u32,
    /// Of the record seen last; `None` before the first one.
    header: Option<Header>,
    /// Bytes of its body that are still to come.
    left: u16,
    beginning: Beginning,
}

/// What a steady direction is made of, and made into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamSnapshot {
    pub(crate) position: Position,
    pub(crate) latest_ns: Option<i64>,
    /// The version of its records, and the walk along them.
    pub(crate) walk: Option<(u8, Walker)>,
}

impl Steady {
    pub(crate) fn new(to_gateway: SteadyStream, from_gateway: SteadyStream, agreement: Agreement) -> Self {
        Self { to_gateway, from_gateway, agreement }
    }

    /// What it is made into: both directions, the one to the gateway first, and what the session is.
    pub(crate) fn into_standing(self) -> ([StreamSnapshot; 2], Agreement) {
        ([self.to_gateway, self.from_gateway].map(SteadyStream::into_standing), self.agreement)
    }

    /// Bytes of the present record that are still to come in a direction: behind them is the next record's header.
    #[inline]
    pub(crate) fn left(&self, direction: Direction) -> usize {
        let stream = if direction == Direction::ToGateway { &self.to_gateway } else { &self.from_gateway };
        stream.left.into()
    }

    /// A direction, and what its records are.
    #[inline]
    pub(crate) fn stream(&mut self, direction: Direction) -> (&mut SteadyStream, Protected<'_>) {
        let Self { to_gateway, from_gateway, agreement } = self;
        let stream = if direction == Direction::ToGateway { to_gateway } else { from_gateway };
        (stream, Protected { agreement, direction })
    }
}

/// What the records of a direction are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Protected<'a> {
    agreement: &'a Agreement,
    direction: Direction,
}

impl Protected<'_> {
    /// What is worth knowing of a record.
    #[inline]
    pub(crate) fn marks(&self, header: Header) -> Marks {
        Marks { plaintext: self.agreement.plaintext(header, self.direction), handshake: false }
    }
}

impl SteadyStream {
    /// A direction in its steady state; `None` if it is not.
    pub(crate) fn of(standing: &StreamSnapshot) -> Option<Self> {
        let StreamSnapshot { position: Position { next, begins, beginning }, latest_ns, walk } = *standing;
        let untouched = Self { latest_ns: 0, start_ns: 0, next, begins, header: None, left: 0, beginning };
        let (latest_ns, (minor, walker)) = match (latest_ns, walk) {
            (None, None) => return Some(untouched),
            (Some(latest_ns), Some(walk)) => (latest_ns, walk),
            _ => return None,
        };
        let outside = Header { content_type: ContentType::ApplicationData, minor, length: 0 };
        let begun = walker.begun().filter(|begun| begun.header.minor == minor && begun.last_ns == latest_ns);
        match begun {
            Some(Begun { header, left, start_ns, .. }) if is_steady(header) && left > 0 => {
                Some(Self { latest_ns, start_ns, header: Some(header), left, ..untouched })
            }
            _ if walker.is_inside() => None,
            _ => Some(Self { latest_ns, header: Some(outside), ..untouched }),
        }
    }

    fn into_standing(self) -> StreamSnapshot {
        let Self { latest_ns, start_ns, next, begins, header, left, beginning } = self;
        let walk =
            header.map(|header| (header.minor, Walker::within(Begun { header, left, start_ns, last_ns: latest_ns })));
        StreamSnapshot { position: Position { next, begins, beginning }, latest_ns: walk.map(|_| latest_ns), walk }
    }

    /// Takes a segment that comes in order, for [`next_record`](Self::next_record); no other.
    #[inline]
    pub(crate) fn take<'a>(&mut self, segment: &Segment<'a>) -> Option<Remainder<'a>> {
        if segment.sequence != self.next || self.header.is_none() {
            return None;
        }
        let whole = Piece::of(segment);
        self.next = self.next.wrapping_add(whole.length() as u32);
        // What came too early is there for its reader when all before it is: so time goes the way of the stream.
        self.latest_ns = self.latest_ns.max(segment.time_ns);
        Some(Remainder { payload: whole.payload, hidden: whole.hidden, time_ns: self.latest_ns })
    }

    /// Goes on to the end of a record. What is left where there is none is for a
    /// [`Connection`](crate::connection::Connection): a header that may go on in the next segment, or is none of a steady record.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a record")]
    pub(crate) fn next_record(&mut self, rest: &mut Remainder<'_>) -> Option<Sized> {
        let (header, left) = match self.header {
            Some(header) if self.left > 0 => (header, self.left),
            _ => {
                let (bytes, behind) = rest.payload.split_first_chunk()?;
                let header = Header::parse(*bytes).filter(|header| is_steady(*header))?;
                (self.header, self.start_ns, rest.payload) = (Some(header), rest.time_ns, behind);
                (header, header.length)
            }
        };
        self.left = 0;
        if let Some(behind) = rest.payload.get(left.into()..) {
            rest.payload = behind;
        } else {
            self.left = rest.take_all(left);
            if self.left > 0 {
                return None;
            }
        }
        Some(Sized { header, start_ns: self.start_ns, time_ns: rest.time_ns })
    }
}

/// What is left of a segment.
#[derive(Debug)]
pub(crate) struct Remainder<'a> {
    payload: &'a [u8],
    hidden: u32,
    time_ns: i64,
}

impl<'a> Remainder<'a> {
    /// Takes what was captured, and of what was not as much as a body of so many bytes needs; gives how many are still to come.
    #[inline]
    fn take_all(&mut self, body: u16) -> u16 {
        let left = body - self.payload.len() as u16;
        let hidden = self.hidden.min(left.into());
        self.payload = &[];
        self.hidden -= hidden;
        left - hidden as u16
    }

    /// What that is, of this segment.
    #[inline]
    pub(crate) fn piece(&self, segment: &Segment<'a>) -> Piece<'a> {
        Piece { time_ns: self.time_ns, ..Piece::of(segment).behind(self.payload, self.hidden) }
    }

    /// Whether there is nothing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.payload.is_empty() && self.hidden == 0
    }
}

/// Whether a record is of the kind that nearly all are, and changes nothing but what comes next. So do some others, which are rare
/// enough to go the long way.
#[inline]
fn is_steady(header: Header) -> bool {
    header.content_type == ContentType::ApplicationData
}
