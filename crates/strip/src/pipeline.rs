//! The two stages that find records, packet by packet.

use sizeleak_flow_filter::FlowFilter;
use sizeleak_frame::{Frame, Packet, Packets, Segments};
use sizeleak_platform::runtime::{Stage, StageError};
use sizeleak_record_sizer::{RecordSizer, SizerInput};

use crate::options::{StripError, StripOptions};

/// `flow-filter` and `record-sizer`.
#[derive(Debug)]
pub(crate) struct RecordPipeline {
    filter: FlowFilter,
    pub(crate) sizer: RecordSizer,
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
}
