//! Encoding of the protocols inside TLS. Which messages are sent when is decided in `application`.

pub(crate) mod compression;
pub(crate) mod http;
pub(crate) mod mqtt;
pub(crate) mod websocket;
