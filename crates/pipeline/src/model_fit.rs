//! Whether the model fitted what a run asked of it, as the last stages judged it.

use std::fmt;

use sizeleak_frame::Summary;

/// What the last stage says of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFit {
    /// It fits every flow that had enough commands to judge by, or there was none.
    All,
    /// It does not fit some of the flows.
    Some {
        misfits: u64,
        /// How many had enough commands.
        judged: u64,
    },
    /// It fits no flow that had enough commands.
    None {
        /// How many had enough commands.
        judged: u64,
    },
    /// It was asked of no command: all belong to other gateways or services than it was learned on.
    Elsewhere { commands: u64 },
}

impl ModelFit {
    /// That of two runs together: a model that fits nothing in both of them fits nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let fits_nothing = |fit: &Self| matches!(fit, Self::None { .. } | Self::Elsewhere { .. });
        if fits_nothing(&self) { other } else { self }
    }

    pub fn of(summary: &Summary) -> Self {
        let count = |name: &str| {
            let counts = summary.stages.iter().filter_map(|stage| stage.counters.get(name).copied());
            counts.fold(0, u64::saturating_add)
        };
        let (misfits, judged) = (count("misfit_flows"), count("judged_flows"));
        // Each stage with a model counts the same commands.
        let unasked = summary.stages.iter().filter(|stage| stage.counters.get("with_model") == Some(&0));
        let unasked = unasked.filter_map(|stage| stage.counters.get("without_model").copied()).max();
        if let Some(commands) = unasked {
            return Self::Elsewhere { commands };
        }
        match misfits {
            0 => Self::All,
            _ if misfits < judged => Self::Some { misfits, judged },
            _ => Self::None { judged },
        }
    }
}

/// For people: what does not fit, and what to do.
impl fmt::Display for ModelFit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = |number: u64| if number == 1 { "flow" } else { "flows" };
        match self {
            Self::All => formatter.write_str("the model fits"),
            Self::Some { misfits, judged } => write!(
                formatter,
                "this model does not fit {misfits} of {judged} flows: their answers are not to be trusted; learn them \
                 with labels of their own, or leave them out (`flow-filter --service`)"
            ),
            Self::None { judged } => write!(
                formatter,
                "this model does not fit this gateway: none of {judged} {} has the sizes and replies that it knows; its \
                 answers are not to be trusted; learn a model of this gateway",
                flows(*judged)
            ),
            Self::Elsewhere { commands } => write!(
                formatter,
                "the model is not for these flows: {commands} {} to other gateways or services than it was learned on, \
                 so none is answered (`-v` names each flow); learn a model of this gateway",
                if *commands == 1 { "command belongs" } else { "commands belong" }
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::StageSummary;

    use super::*;

    #[test]
    fn fit_is_what_the_counters_say() {
        let fit = |counters: &[(&str, u64)]| {
            let counters = counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            ModelFit::of(&Summary { stages: vec![StageSummary { counters, ..StageSummary::default() }] })
        };
        assert_eq!(fit(&[]), ModelFit::All);
        assert_eq!(fit(&[("judged_flows", 3), ("misfit_flows", 1)]), ModelFit::Some { misfits: 1, judged: 3 });
        assert_eq!(fit(&[("judged_flows", 2), ("misfit_flows", 2)]), ModelFit::None { judged: 2 });
        assert_eq!(fit(&[("with_model", 1), ("without_model", 9)]), ModelFit::All);
        assert_eq!(fit(&[("with_model", 0), ("without_model", 9)]), ModelFit::Elsewhere { commands: 9 });
    }
}
