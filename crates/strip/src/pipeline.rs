//! The two stages that find records, packet by packet.

use std::ops::Range;

use sizeleak_flow_filter::FlowFilter;
use sizeleak_frame::{Frame, Packet, Packets, Segments};
use sizeleak_platform::runtime::{Stage, StageError};
use sizeleak_record_sizer::{ReadBytes, RecordSizer, SizerInput};

use crate::options::{StripError, StripOptions};

/// `flow-filter` and `record-sizer`.
#[derive(Debug)]
pub(crate) struct RecordPipeline {
    filter: FlowFilter,
    sizer: RecordSizer,
    /// What both found about the last packet, without its segments.
    pub(crate) found: Vec<Frame>,
}

impl RecordPipeline {
    pub(crate) fn new(options: &StripOptions) -> Result<Self, StripError> {
        let filter = sizeleak_flow_filter::Options {
            gateway: options.gateway.clone(),
            tunnel: options.tunnel.clone(),
            ..sizeleak_flow_filter::Options::default()
        };
        let sizer = RecordSizer::new(&sizeleak_record_sizer::Options::default())?.noting_read_bytes();
        Ok(Self { filter: FlowFilter::new(&filter)?, sizer, found: Vec::new() })
    }

    /// Takes a packet; returns its segment, if it is one of the gateway's.
    pub(crate) fn packet(&mut self, packet: Packet<'_>) -> Result<Option<Segments>, StageError> {
        self.found.clear();
        let (mut packets, mut frames) = (Packets::with_capacity(1), Vec::new());
        packets.push(packet);
        self.filter.process(packets, &mut frames)?;
        let mut segments = None;
        for frame in frames {
            match frame {
                Frame::Segments(batch) => {
                    segments = Some((*batch).clone());
                    self.sizer.process((*batch).into(), &mut self.found)?;
                }
                Frame::Flow(flow) => self.sizer.process(SizerInput::Flow(flow), &mut self.found)?,
                frame => self.found.push(frame),
            }
        }
        Ok(segments)
    }

    pub(crate) fn finish(&mut self) -> Result<(), StageError> {
        self.found.clear();
        self.filter.finish(&mut self.found)?;
        self.sizer.finish(&mut self.found)
    }

    /// The bytes of the last datagram that were read, by their places in it.
    pub(crate) fn take_datagram_read_bytes(&mut self) -> Vec<Range<usize>> {
        self.sizer.take_datagram_read_bytes()
    }

    /// The bytes of TCP streams that were read since the last call.
    pub(crate) fn take_read_bytes(&mut self) -> Vec<ReadBytes> {
        self.sizer.take_read_bytes()
    }
}
