//! The audit of a gateway behind a tunnel: what sizes give away without it and through it, side by side.

use anyhow::Result;
use serde::Serialize;
use sizeleak_audit::leakage::{Learned, share_in_words};
use sizeleak_audit::tunnel::{Background, Tunnel, TunnelAudit, flows_in_words};
use sizeleak_model::Model;
use sizeleak_report::document::Value::Share;
use sizeleak_report::document::{Figure, Value};
use sizeleak_survey::in_words;

use super::table::{ROWS, named_paragraph};
use crate::command::audited_model::{AuditedModel, PriorReport, actions};
use crate::command::document::{Document, figure, paragraph, spaced};
use crate::command::report_format::ReportForm;

#[derive(Debug, Serialize)]
pub(super) struct TunnelReport<'a> {
    schema: u32,
    sentence: String,
    prior: PriorReport,
    actions: Vec<&'a str>,
    tunnel: &'a Tunnel,
    background: Option<&'a Background>,
    #[serde(flatten)]
    audit: TunnelAudit,
}

/// A figure of what is learned: its name, and its value.
type Row = (&'static str, fn(&Learned) -> Value);

impl<'a> TunnelReport<'a> {
    pub(super) fn new(
        audited: &AuditedModel,
        model: &'a Model,
        tunnel: &'a Tunnel,
        background: Option<&'a Background>,
    ) -> Result<Self> {
        let audit = TunnelAudit::new(model, &audited.premises(), tunnel, background)?;
        let sentence = audit.sentence(tunnel, background);
        let (prior, actions) = (audited.prior(model), actions(model));
        Ok(Self { schema: 1, sentence, prior, actions, tunnel, background, audit })
    }

    pub(super) fn written(&self, form: ReportForm) -> Result<Vec<u8>> {
        form.written(self, None, || self.document())
    }

    fn document(&self) -> Document {
        let premises = [
            ("prior", Some(self.prior.sentence.clone())),
            ("tunnel", Some(self.tunnel.in_words())),
            ("background", self.background_in_words()),
            ("observer", Some("counts the packets that are sent at once, and adds up their bytes".to_owned())),
        ];
        let premises = premises.into_iter().filter_map(|(name, text)| Some(named_paragraph(name, &text?)));
        let named: [Row; 6] = [
            ("command by guessing, V₀", |learned| Share(learned.command.guessing)),
            ("command, V", |learned| Share(learned.command.named)),
            ("number of actions by guessing", |learned| Share(learned.number.guessing)),
            ("number of actions", |learned| Share(learned.number.named)),
            ("types of devices by guessing", |learned| {
                learned.kinds.as_ref().map(|kinds| Share(kinds.guessing)).into()
            }),
            ("types of devices", |learned| learned.kinds.as_ref().map(|kinds| Share(kinds.named)).into()),
        ];
        let named = self.beside("named correctly", named.into_iter());
        let measures = ROWS.iter().map(|(name, value)| (*name, |learned: &Learned| value(&learned.command)));
        let sentence = paragraph(self.sentence.clone(), 0);
        spaced([sentence, premises.flatten().collect(), named, self.beside("of the command", measures)])
    }

    /// What other flows send; `None` if there are none.
    fn background_in_words(&self) -> Option<String> {
        let Background { flows, conversations, seconds, busy, .. } = self.background?;
        let left_out = match self.audit.left_out {
            left_out if left_out > 0.0 => format!(
                "; what they send in {} of cases is taken to hide nothing, so that no more is given away than this",
                share_in_words(left_out)
            ),
            _ => String::new(),
        };
        Some(format!(
            "{}, each like any of {conversations} of a device with a service in {}, which sends within 40 ms of a command \
             in {} of cases{left_out}",
            flows_in_words(*flows),
            in_words((seconds * 1e9) as i64),
            share_in_words(*busy)
        ))
    }

    /// Figures without the tunnel, through it, and beside a background, if there is one.
    fn beside<F: Fn(&Learned) -> Value>(&self, title: &str, rows: impl Iterator<Item = (&'static str, F)>) -> Document {
        let TunnelAudit { by_size, through_tunnel, beside_background, .. } = &self.audit;
        let columns = format!("{title} | by size alone | through the tunnel");
        let (Some(beside), Some(background)) = (beside_background, self.background) else {
            let rows = rows.map(|(name, value)| [name.into(), value(by_size), value(through_tunnel)]);
            return figure(&Figure::new("beside", &columns, rows));
        };
        let columns = format!("{columns} | beside {}", flows_in_words(background.flows));
        let rows = rows.map(|(name, value)| [name.into(), value(by_size), value(through_tunnel), value(beside)]);
        figure(&Figure::new("beside", &columns, rows))
    }
}
