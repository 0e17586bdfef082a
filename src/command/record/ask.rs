//! A person who sends the commands, at a phone or at the device: what to do next stands on the terminal, and lines of stdin
//! say how it went.

use std::io::{self, Write};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_recording::{DeviceAction, Step};
use sizeleak_text::escaped;

use crate::command::line_channel::lines_of;

/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 400;

/// How often it is looked whether the recording was interrupted.
const BETWEEN_CHECKS: Duration = Duration::from_millis(100);

/// Nobody waits so long between the device and Enter: what came before was not this command, in nanoseconds.
pub(super) const HANDS_NS: i64 = 30_000_000_000;

/// A person and their answers.
pub(super) struct Person {
    answers: Receiver<String>,
    interrupt: Interrupt,
    /// Whether they said that the command before the present one went wrong.
    pub(super) takes_back_last: bool,
}

impl Person {
    /// Whoever writes lines to stdin.
    pub(super) fn new(interrupt: Interrupt) -> Self {
        Self { answers: lines_of(io::stdin(), MAX_ANSWER), interrupt, takes_back_last: false }
    }

    /// Asks for a command until it is done. `Err` is why it was not.
    pub(super) fn ask(&mut self, step: &Step) -> Result<(), String> {
        self.takes_back_last = false;
        let device = |DeviceAction { device, index, action }: &DeviceAction| {
            escaped(&format!("{device} {index} {action}")).into_owned()
        };
        let devices: Vec<String> = step.devices.iter().map(device).collect();
        let together = if devices.len() > 1 { ", as one command" } else { "" };
        let command = format!("{:>3}.  {}{together}", step.number, devices.join(", "));
        let line = "═".repeat(command.chars().count() + 2);
        let keys = "Enter when it is done · s to skip it · u if the last one went wrong";
        let told = |text: String| writeln!(io::stderr(), "{text}").map_err(|error| error.to_string());
        told(format!("\n  {line}\n  {command}\n  {line}\n  {keys}"))?;
        loop {
            match self.answers.recv_timeout(BETWEEN_CHECKS) {
                Ok(answer) => match answer.trim() {
                    "" => return Ok(()),
                    "s" => return Err("skipped".to_owned()),
                    "u" => {
                        self.takes_back_last = true;
                        told(format!("  The last one does not count. {command}"))?;
                    }
                    _ => told(format!("  {keys}"))?,
                },
                Err(RecvTimeoutError::Timeout) if self.interrupt.is_set() => return Err("interrupted".to_owned()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err("stdin has ended: nobody answers".to_owned()),
            }
        }
    }
}
