//! The units of a point, one after another: each continues the flows of the one before it. A unit that is there already is
//! not read again.

use std::mem;

use sizeleak_pipeline::Checkpoint;

use crate::description::DescribedFile;
use crate::keys::{end_key, records_key};
use crate::records::RecordMaker;
use crate::unit_store::{UnitDescription, unit_name};

/// Where units end: before a capture that begins later than everything before it. Where captures are not read by the
/// times of their packets, all are one unit.
#[derive(Debug)]
pub(crate) struct UnitBounds {
    is_by_time: bool,
    latest_ns: Option<i64>,
}

impl UnitBounds {
    pub(crate) fn new(is_by_time: bool) -> Self {
        Self { is_by_time, latest_ns: None }
    }

    /// Whether a capture that begins at this time, and all later ones, do not overlap with those so far.
    pub(crate) fn is_before(&self, head_ns: Option<i64>) -> bool {
        self.is_by_time && head_ns.is_some_and(|head| self.latest_ns.is_some_and(|latest| head > latest))
    }

    pub(crate) fn add(&mut self, capture: &DescribedFile) {
        self.latest_ns = self.latest_ns.max(capture.file.last_ns);
    }
}

pub(crate) struct Chain<'a> {
    maker: RecordMaker<'a>,
    bounds: UnitBounds,
    next: Vec<DescribedFile>,
    units: Vec<UnitDescription>,
    /// The state behind the last unit, if that was processed now.
    state: Option<Checkpoint>,
}

impl<'a> Chain<'a> {
    pub(crate) fn new(maker: RecordMaker<'a>, bounds: UnitBounds) -> Self {
        Self { maker, bounds, next: Vec::new(), units: Vec::new(), state: None }
    }

    /// Ends the present unit if the next capture, which begins at this time, does not belong to it.
    pub(crate) fn begin_capture(&mut self, head_ns: Option<i64>) -> Result<(), String> {
        if self.bounds.is_before(head_ns) { self.end_unit() } else { Ok(()) }
    }

    pub(crate) fn add(&mut self, capture: DescribedFile) {
        self.bounds.add(&capture);
        self.next.push(capture);
    }

    pub(crate) fn end(mut self) -> Result<Vec<UnitDescription>, String> {
        self.end_unit()?;
        let Some(state) = self.units.last().and_then(|last| last.state.clone()) else { return Ok(self.units) };
        let key = end_key(&state.digest);
        let end = if let Some(end) = self.maker.store.find(&unit_name(None, &key), &key) {
            end
        } else {
            let last = self.last_state()?.ok_or("the flows have no state")?;
            self.maker.end(&key, &last)?
        };
        self.units.push(end);
        Ok(self.units)
    }

    /// Processes the captures of the present unit, unless their records are there.
    fn end_unit(&mut self) -> Result<(), String> {
        let captures = mem::take(&mut self.next);
        let Some(_) = captures.first() else { return Ok(()) };
        let before = self.units.last().and_then(|unit| unit.state.as_ref()).map(|state| state.digest.as_str());
        let key = records_key(self.maker.stages, &captures, before)?;
        let name = unit_name(captures.first().and_then(|first| first.head_ns), &key);
        let unit = if let Some(known) = self.maker.store.find(&name, &key) {
            self.maker.progress.add(captures.iter().filter_map(|capture| capture.file.bytes).sum());
            self.state = None;
            self.renamed(known, captures)?
        } else {
            let before = self.last_state()?;
            let (unit, state) = self.maker.make(&key, &captures, before.as_ref())?;
            self.state = state;
            unit
        };
        self.units.push(unit);
        Ok(())
    }

    /// A unit whose captures may have other names by now.
    fn renamed(&self, known: UnitDescription, captures: Vec<DescribedFile>) -> Result<UnitDescription, String> {
        if known.captures == captures {
            return Ok(known);
        }
        let unit = UnitDescription { captures, ..known };
        self.maker.describe(&unit)?;
        Ok(unit)
    }

    /// The state behind the last unit; `None` if there is no unit. One that is damaged is made again.
    fn last_state(&mut self) -> Result<Option<Checkpoint>, String> {
        if let Some(state) = self.state.take() {
            return Ok(Some(state));
        }
        let mut damaged = self.units.len();
        let mut state = None;
        while let Some(unit) = damaged.checked_sub(1).and_then(|last| self.units.get(last)) {
            state = self.maker.store.state(unit);
            if state.is_some() {
                break;
            }
            damaged -= 1;
        }
        for unit in self.units.iter().skip(damaged) {
            let key = blake3::Hash::from_hex(&unit.key).map_err(|error| error.to_string())?;
            let (made, after) = self.maker.make(&key, &unit.captures, state.as_ref())?;
            if made.state != unit.state {
                return Err(format!("{} was made from the same captures with another result: remove it", unit.name));
            }
            state = after;
        }
        Ok(state)
    }
}
