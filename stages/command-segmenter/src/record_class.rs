//! What a record is, and under which condition the message it belongs to is a command.

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordClass {
    /// The first record of a command.
    CommandStart,
    /// A further record of a command.
    CommandPart,
    /// The service's answer to the gateway.
    Answer,
    /// A keep-alive of the service.
    KeepAlive,
    /// The gateway's reply, if a command is open.
    Reply,
    /// A message that the gateway sends on its own initiative.
    Telemetry,
    /// Too small for any of these.
    Tiny,
    /// A record of the service whose size was never seen and fits no actions.
    Unexplained,
}

/// When a message of the service is a command: that may depend on the replies to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandCondition {
    Always,
    Never,
    IfReplied,
    IfSilent,
}

impl CommandCondition {
    /// Whether a message with this many replies is a command.
    pub(crate) fn is_met(self, replies: u32) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::IfReplied => replies > 0,
            Self::IfSilent => replies == 0,
        }
    }
}

/// What a record is, and when the open message of its flow, this record included, is a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) class: RecordClass,
    pub(crate) condition: CommandCondition,
    /// The index of the request that the message answers.
    pub(crate) answered_request: Option<usize>,
}

impl From<RecordClass> for Decision {
    fn from(class: RecordClass) -> Self {
        Self { class, condition: CommandCondition::Always, answered_request: None }
    }
}

impl Decision {
    /// When a message is a command that consists of several records and was classified as a whole.
    pub(crate) fn condition_of_whole(self) -> CommandCondition {
        match self.class {
            RecordClass::CommandStart | RecordClass::CommandPart => self.condition,
            _ => CommandCondition::Never,
        }
    }
}
