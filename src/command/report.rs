//! `sizeleak report`: everything that is known of a gateway's leak, as one page for people.

mod findings;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use findings::Draft;
use jiff::tz::TimeZone;
use sizeleak_habits::{Home, Profile};
use sizeleak_inference::space::SpaceError;
use sizeleak_learning::digest_capture;
use sizeleak_platform::storage::RunFiles;
use sizeleak_report::document::{Figure, Report, Section};
use sizeleak_report::{Observed, habits_section, habits_verdict, html, markdown};

use super::plot::content::home as home_of;
use super::session::{Content, Operand, Session};
use super::shared_options::OUTPUT;
use crate::command::answers_input::AnswersInput;
use crate::command::audited_model::AuditedModel;
use crate::command::document::quoted;
use crate::command::failure::usage;
use crate::command::labels::LabelledCaptures;
use crate::command::output_option::OutputOption;

pub(crate) fn run(mut arguments: Arguments, session: &mut Session) -> Result<()> {
    let form = arguments.output.form(arguments.format, ReportForm::value_variants(), "sizeleak report")?;
    let given = Given::take_from(&mut arguments.captures)?;
    let mut read = RunFiles::new();
    given.files(&arguments).iter().for_each(|(role, path)| read.reads(role, path));
    session.check_files(read)?;
    let (zone, home) = home(&arguments, &given)?;
    let (mut observed, mut draft) = (Observed::new(zone), Draft::default());
    if let Err(failure) = given.answers.read(arguments.captures.range.range()?, &mut observed, |observed, _| {
        observed.end_of_file();
        Ok(())
    }) {
        observed.end_of_file();
        if observed.commands() + observed.deviation_count() == 0 {
            return Err(failure);
        }
        draft.damage = Some(failure.context("the report covers what is before the damage".to_owned()));
    }
    let model = arguments.audited.path().map(|_| arguments.audited.model()).transpose()?;
    let captures = &arguments.captures;
    if let Some(model) = &model {
        let is_alone = captures.traffic.operands.is_empty() && !given.has_findings();
        match draft.add_model(model, &arguments.audited) {
            Err(fault) => match fault.downcast_ref() {
                Some(SpaceError::NoSizes | SpaceError::OneDevice) if !is_alone => draft.add_kinds(&fault.to_string()),
                _ => return Err(fault),
            },
            Ok(()) => {}
        }
    }
    if !captures.traffic.operands.is_empty() {
        let labelled = draft.add_captures(captures, &arguments.audited, model.as_ref(), &mut observed)?;
        draft.sections.push(if arguments.quick {
            Section::missing("learning", "Left out by `--quick`.")
        } else {
            labelled.learning_curve(captures)
        });
    }
    let Draft { mut verdicts, tiles, fix, mut sections, mut figures, damage } = draft;
    sections.push(given.provenance(&arguments)?);
    verdicts.extend(observed.verdict());
    if let Some(home) = home {
        verdicts.push(habits_verdict(&home));
        sections.push(habits_section(&home, observed.clock()));
    }
    verdicts.extend(observed.deviation_verdict());
    let Some(verdict) = verdicts.into_iter().next() else {
        let known = "name a model (`--model FILE`), labelled captures, answers or a profile";
        return Err(usage!("there is nothing to report on: {known}"));
    };
    figures.splice(0..0, observed.figures());
    if !figures.is_empty() {
        let text =
            "The observer sees encrypted records on their way to the gateway: when they come, and how long they are.";
        sections.push(Section::new("seen", vec![text.to_owned()], figures));
    }
    sections.extend(observed.deviations().into_iter().chain(observed.latencies()));
    let fix = fix.unwrap_or_else(|| "A model tells what would stop the leak, and what that costs.".to_owned());
    let report = Report { verdict, tiles, fix, sections };
    let written = match form.unwrap_or_default() {
        ReportForm::Html => html(report),
        ReportForm::Markdown => markdown(report),
    };
    arguments.output.write(written.as_bytes())?;
    damage.map_or(Ok(()), Err)
}

fn home(arguments: &Arguments, given: &Given) -> Result<(TimeZone, Option<Home>)> {
    let Some(path) = &given.profile else { return Ok((TimeZone::UTC, None)) };
    let profile = Profile::read(path)?;
    let (_, home) = home_of(&profile, &arguments.captures.gateways()).with_context(|| path.display().to_string())?;
    // A profile is read only if its zone is known.
    Ok((TimeZone::get(profile.zone()).unwrap_or(TimeZone::UTC), Some(home)))
}

/// Write all that is known of a gateway's leak as a page for people
#[derive(Debug, Args)]
#[command(mut_arg("set", |set| set.hide_short_help(true)))]
#[command(mut_arg("operands", |files| {
    files.help("Captures with `--labels`, answers, deviations or a profile, recognised by content; `-` is stdin")
}))]
#[command(after_long_help = "Examples:\n  \
    sizeleak report --model model.toml -o report.html\n  \
    sizeleak report test.pcap --labels test.csv --model model.toml --gateway 192.168.1.20 -o report.html\n  \
    sizeleak report answers.frames home.profile.toml deviations.ndjson -o report.html\n  \
    sizeleak report --model model.toml --quick --format markdown > report.md\n\n\
    Files are told apart by content. What is not given is left out, and the page says what to give. It is one file, which \
    loads nothing and sends nothing, and holds sums over many commands: no single command, and no time of a single event. \
    docs/report.md explains it.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) captures: LabelledCaptures,

    #[command(flatten)]
    pub(super) audited: AuditedModel,

    /// Leave out the learning curve, which takes longest
    #[arg(long)]
    pub(super) quick: bool,

    /// The format of the output: html or markdown [default: by the name of FILE, else html]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    pub(super) format: Option<ReportForm>,

    #[command(flatten)]
    pub(super) output: OutputOption,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportForm {
    /// One page that loads nothing
    #[default]
    Html,
    /// The same text and tables as Markdown
    Markdown,
}

#[derive(Debug)]
pub(super) struct Given {
    pub(super) answers: AnswersInput,
    pub(super) profile: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Capture,
    Answers,
    Profile,
}

impl Given {
    fn take_from(captures: &mut LabelledCaptures) -> Result<Self> {
        let labelled = captures.are_labelled();
        let operands = std::mem::take(&mut captures.traffic.operands);
        // Labels are about captures. Where there are none, they are about saved streams.
        let is_capture = |operand: &Operand| role(operand, labelled) == Role::Capture;
        let has_captures = operands.iter().any(is_capture);
        let (mut answers, mut profiles) = (Vec::new(), Vec::new());
        for operand in operands {
            match role(&operand, labelled) {
                Role::Profile => profiles.push(operand.path),
                Role::Answers if has_captures || !labelled => answers.push(operand.path),
                Role::Answers | Role::Capture => captures.traffic.operands.push(operand),
            }
        }
        captures.traffic.check()?;
        if !captures.traffic.operands.is_empty() && !labelled {
            return Err(usage!(
                "captures need labels: name them with `--labels FILE`; without labels, name the answers that `sizeleak run \
                 CAPTURE --model model.toml -o answers.frames` writes"
            ));
        }
        if labelled && captures.traffic.operands.is_empty() {
            return Err(usage!("`--labels` needs the captures that they are about: name them"));
        }
        if let [one, other, ..] = profiles.as_slice() {
            let (one, other) = (one.display(), other.display());
            return Err(usage!("{one} and {other} are both profiles: a report is about one home"));
        }
        let profile = profiles.into_iter().next();
        Ok(Self { answers: AnswersInput { answers }, profile })
    }

    /// Whether there are answers or a profile, which a report is about without a model, too.
    fn has_findings(&self) -> bool {
        !self.answers.answers.is_empty() || self.profile.is_some()
    }

    fn files(&self, arguments: &Arguments) -> Vec<(&'static str, PathBuf)> {
        let mut files: Vec<(&'static str, PathBuf)> = Vec::new();
        let captures = &arguments.captures;
        files.extend(captures.traffic.captures().into_iter().map(|path| ("the capture", path)));
        files.extend(captures.traffic.streams().into_iter().map(|path| ("the saved stream", path)));
        files.extend(captures.labels.clone().map(|path| ("the labels", path)));
        files.extend(arguments.audited.files());
        files.extend(self.answers.answers.iter().map(|path| ("the answers", path.clone())));
        files.extend(self.profile.iter().map(|path| ("the profile", path.clone())));
        files
    }

    fn provenance(&self, arguments: &Arguments) -> Result<Section> {
        let mut rows = Vec::new();
        for (role, path) in self.files(arguments) {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            // Of stdin and folders there is none.
            let digest = path.is_file().then(|| digest_capture(&path)).transpose()?.map(|digest| digest.sha256);
            rows.push([role.trim_start_matches("the ").into(), name.into(), digest.into()]);
        }
        let files = Figure::new("files", "what | name | SHA-256", rows).titled("Files", "");
        let version = env!("CARGO_PKG_VERSION");
        let text = format!("Written by sizeleak {version}. The same files and options give the same bytes.");
        Ok(Section::new("provenance", vec![text, format!("Command line: `{}`", command_line())], vec![files]))
    }
}

fn role(operand: &Operand, labelled: bool) -> Role {
    match operand.content {
        _ if operand.path.is_dir() && labelled => Role::Capture,
        _ if operand.path.is_dir() => Role::Answers,
        _ if operand.is_profile() => Role::Profile,
        Content::Stream | Content::Answers => Role::Answers,
        // Nothing can be looked at without taking from it.
        Content::Capture if operand.path == Path::new("-") && !labelled => Role::Answers,
        _ => Role::Capture,
    }
}

/// The command line of this process without its output, which the report does not depend on.
fn command_line() -> String {
    let mut arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let mut words = vec!["sizeleak".to_owned()];
    while let Some(argument) = arguments.next() {
        if ["-o", "-w", "--output"].contains(&&*argument) {
            arguments.next();
        } else if !["-o", "-w", "--output="].iter().any(|option| argument.starts_with(option)) {
            words.push(quoted(&argument));
        }
    }
    words.join(" ")
}
