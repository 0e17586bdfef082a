//! `sizeleak profile`: what a home usually does, from the answers of some weeks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use sizeleak_frame::Frame;
use sizeleak_habits::{Budget, Profile, SeenFlows, Sighting};
use sizeleak_output::AnswerSink;
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::counted;

use super::failure::{usage, with_code};
use super::output_option::write_result;
use super::shared_options::{INPUT, OUTPUT, TimeRangeOption};
use super::traffic_input::AnswersInput;

/// Learn what a home usually does and when
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    sizeleak run january.pcap --gateway 192.168.1.20 --model model.toml -o january.frames\n  \
    sizeleak profile january.frames --time-zone Europe/Berlin -o home.profile.toml\n  \
    sizeleak profile february.frames --add home.profile.toml -o home.profile.toml\n  \
    sizeleak profile spring.frames --until 2026-04-01 -o home.profile.toml\n  \
    sizeleak profile results/identifications --time-zone Europe/Berlin -o homes.profile.toml\n\n\
    The profile is TOML, which docs/guide.md explains. It says as much about the people of a home as the answers do: \
    keep it as you keep those.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    answers: AnswersInput,

    #[command(flatten)]
    range: TimeRangeOption,

    /// Go on from this profile; answers that it has already count once
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    add: Option<PathBuf>,

    /// The zone by whose clock the people of the home live [default: that of `--add`, else UTC]
    #[arg(long, value_name = "ZONE", help_heading = INPUT)]
    time_zone: Option<String>,

    /// Where to write the profile; `-` is stdout
    #[arg(short, long, short_alias = 'w', value_name = "FILE", help_heading = OUTPUT)]
    output: PathBuf,
}

struct Homes {
    flows: SeenFlows,
    sightings: BTreeMap<String, Vec<Sighting>>,
    unanswered: u64,
}

impl AnswerSink for Homes {
    fn add(&mut self, frame: Frame) {
        match frame {
            Frame::Flow(flow) => self.flows.name_gateway(flow.flow, &flow.gateway.to_string()),
            Frame::Notice(notice) => self.flows.note(&notice),
            Frame::Identification(answer) => {
                let (gateway, sighting) = self.flows.sighting(&answer);
                self.unanswered += u64::from(sighting.candidates.is_empty());
                self.sightings.entry(gateway).or_default().push(sighting);
            }
            _ => {}
        }
    }

    fn learn(&mut self, flow: u64, gateway: Option<&str>, _: Option<&str>) {
        if let Some(gateway) = gateway {
            self.flows.name_gateway(flow, gateway);
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut profile = arguments.begun()?;
    // All answers are held, so all flows may be.
    let flows = SeenFlows::new(usize::MAX);
    let mut homes = Homes { flows, sightings: BTreeMap::new(), unanswered: 0 };
    arguments.answers.read(arguments.range.range()?, &mut homes, |_, _| Ok(()))?;
    if homes.sightings.is_empty() {
        return Err(anyhow!(
            "there is no answer to learn from: `sizeleak run CAPTURE --model MODEL -o answers.frames` writes some"
        ));
    }
    for (gateway, sightings) in homes.sightings {
        profile.add(&gateway, sightings);
    }
    write_result(&arguments.output, profile.to_toml().as_bytes())?;
    report(&profile, homes.unanswered);
    Ok(())
}

impl Arguments {
    fn begun(&self) -> Result<Profile> {
        let Some(path) = &self.add else {
            return Profile::new(self.time_zone.as_deref().unwrap_or("UTC")).map_err(|error| with_code(2, error));
        };
        let profile = Profile::read(path)?;
        if let Some(zone) = self.time_zone.as_ref().filter(|zone| *zone != profile.zone()) {
            return Err(usage!(
                "`--time-zone {zone}` contradicts {}, which goes by {}: leave it out, or learn all answers anew",
                path.display(),
                profile.zone()
            ));
        }
        Ok(profile)
    }
}

fn report(profile: &Profile, unanswered: u64) {
    for gateway in profile.gateways() {
        let home = profile.home(gateway);
        let subject = if gateway.is_empty() { "unknown gateway" } else { gateway };
        let (days, commands) = (home.learned_days(), home.sightings().count());
        let commands = counted(commands, "command", "commands");
        let whole = counted(days, "whole day is", "whole days are");
        say(subject, &format!("{commands}; {whole} learned, by the clock of {}", profile.zone()));
        let components = home.components();
        let used = [("the time of day", components.time), ("the commands before", components.order)];
        let used: Vec<&str> = used.into_iter().filter(|(_, is_used)| *is_used).map(|(name, _)| name).collect();
        let forecast = home.log_loss().filter(|_| !used.is_empty()).map_or_else(
            || "neither the time of day nor the commands before forecast commands better than their rates".to_owned(),
            |loss| format!("a command surprises by {loss:.2} nats, by {}", used.join(" and ")),
        );
        say(subject, &forecast);
        for budget in ["1/week", "1/month"].into_iter().filter_map(|budget| budget.parse::<Budget>().ok()) {
            let days = home.days_needed(budget);
            if days > 0 {
                let days = counted(days, "more whole day", "more whole days");
                say(subject, &format!("learning: {days} needed to keep {budget}"));
            }
        }
    }
    if unanswered > 0 {
        let unanswered = counted(unanswered, "command has", "commands have");
        say("sizeleak", &format!("{unanswered} no answer; only when it came is learned"));
    }
}
