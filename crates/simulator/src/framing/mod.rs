//! The protocols inside TLS: what a message's bytes become. Who says what when is in `script`.

pub(crate) mod http;
pub(crate) mod mqtt;
pub(crate) mod websocket;
