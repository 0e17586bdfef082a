//! Encoding of the protocols inside TLS. Which messages are sent when is decided in `application`.

pub(crate) mod http;
pub(crate) mod mqtt;
pub(crate) mod websocket;

use std::borrow::Cow;
use std::io::Write;

use flate2::write::ZlibEncoder;

use crate::SimulateError;
use crate::scenario::Compression;

/// How hard the encoder tries, from 0 to 9: the default of most libraries.
const LEVEL: u32 = 6;

/// A body as it is sent.
pub(crate) fn compressed(body: &[u8], compression: Compression) -> Result<Cow<'_, [u8]>, SimulateError> {
    let failed = SimulateError::encoding("a compressed body");
    match compression {
        Compression::None => Ok(Cow::Borrowed(body)),
        Compression::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::new(LEVEL));
            encoder.write_all(body).map_err(failed)?;
            encoder.finish().map(Cow::Owned).map_err(failed)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn compressed_bodies_are_zlib_streams() {
        let body =
            br#"{"actions":[{"id":"node-01","set":"on"},{"id":"node-02","set":"on"},{"id":"node-03","set":"on"}]}"#;
        let packed = compressed(body, Compression::Deflate).unwrap();
        assert!(packed.len() < body.len());
        let mut unpacked = Vec::new();
        ZlibDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, body);
        assert_eq!(compressed(body, Compression::None).unwrap(), &body[..]);
    }
}
