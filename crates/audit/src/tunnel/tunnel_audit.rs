//! What commands give away through a tunnel, beside what their sizes alone do.

use serde::Serialize;
use sizeleak_inference::channel::{Channel, EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, Premises, SpaceError};
use sizeleak_model::Model;
use sizeleak_model::policies::PaddingPolicy;

use crate::leakage::{Learned, share_in_words};
use crate::padding::PaddedOutputs;
use crate::tunnel::background::Background;
use crate::tunnel::packets::{Burst, Tunnel};

/// The most entries of a channel: some seconds of work, and 256 MB.
const MAX_ENTRIES: usize = 1 << 22;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TunnelAudit {
    /// From sizes alone, without the tunnel.
    pub by_size: Learned,
    /// From the number and the bytes of the tunnel's packets, where nothing else is sent.
    pub through_tunnel: Learned,
    /// The same beside what other flows send at once; `None` without any.
    pub beside_background: Option<Learned>,
    /// The probability that these send something that is not summed over: it is taken to hide nothing, so that no less is
    /// given away than is said.
    pub left_out: f64,
}

impl TunnelAudit {
    /// The audit of a model, whose gateway is behind the tunnel.
    pub fn new(
        model: &Model,
        premises: &Premises,
        tunnel: &Tunnel,
        background: Option<&Background>,
    ) -> Result<Self, SpaceError> {
        let space = CommandSpace::new(model, premises)?;
        let knowledge = EpsilonKnowledge::Distribution;
        let sizes = Observation::new(&space, model, Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany)?;
        let (alone, bursts) = PaddedOutputs::through_tunnel(&sizes, &PaddingPolicy::None, tunnel);
        let beside = background.map(|background| beside(&sizes, &alone, &bursts, background));
        let (beside_background, left_out) = beside.unzip();
        Ok(Self {
            by_size: Learned::from(&sizes),
            through_tunnel: alone.learned(&sizes),
            beside_background,
            left_out: left_out.unwrap_or(0.0),
        })
    }

    /// The figure that matters most, as a sentence about a tunnel.
    pub fn sentence(&self, tunnel: &Tunnel, background: Option<&Background>) -> String {
        let named = |learned: &Learned| share_in_words(learned.command.named);
        let beside = match (&self.beside_background, background) {
            (Some(learned), Some(background)) => {
                format!("; beside {}: {}", flows_in_words(background.flows), named(learned))
            }
            _ => String::new(),
        };
        format!(
            "An observer of a tunnel's packets ({}) names the exact command in {} of cases (without the tunnel: {}{beside}; \
             guessing: {}).",
            tunnel.title(),
            named(&self.through_tunnel),
            named(&self.by_size),
            share_in_words(self.by_size.command.guessing)
        )
    }
}

pub fn flows_in_words(flows: u32) -> String {
    if flows == 1 { "1 flow".to_owned() } else { format!("{flows} flows") }
}

/// What is learned from commands, each seen as one of `bursts`, beside a background, and the probability that this is left
/// out.
fn beside(sizes: &Observation, alone: &PaddedOutputs, bursts: &[Burst], background: &Background) -> (Learned, f64) {
    // Rows that look alike are one, so that there are few.
    let in_tunnel = |channel: &Channel| alone.channel(channel).merged();
    let entries: usize = in_tunnel(&sizes.command).rows.iter().map(|row| row.outputs.len()).sum();
    let (others, left_out) = background.bursts(MAX_ENTRIES / entries.max(bursts.len()).max(1));
    let with = |burst: &Burst| others.iter().map(|(other, share)| (burst.with(*other), *share)).collect::<Vec<_>>();
    let (together, _) = PaddedOutputs::of(bursts.iter().map(with));
    let learned = Learned::of(sizes, |channel| together.channel(&in_tunnel(channel)).measures());
    (Learned { is_exact: learned.is_exact && left_out <= 0.0, ..learned }, left_out)
}
