//! MQTT 3.1.1: the control packets between a gateway and its broker.

use crate::SimulateError;

/// The largest number of bytes after the fixed header, limited by four length bytes (section 2.2.3).
const MAX_REMAINING: usize = 268_435_455;

/// CONNECT with a clean session and a client identifier (section 3.1).
pub(crate) fn connect(client: &str, keep_alive_seconds: u16) -> Result<Vec<u8>, SimulateError> {
    let mut body = string("MQTT");
    body.extend([4, 2]);
    body.extend(keep_alive_seconds.to_be_bytes());
    body.extend(string(client));
    packet(0x10, &body)
}

/// CONNACK: accepted (section 3.2).
pub(crate) const CONNACK: [u8; 4] = [0x20, 2, 0, 0];

/// SUBSCRIBE to one topic (section 3.8).
pub(crate) fn subscribe(id: u16, topic: &str, quality: u8) -> Result<Vec<u8>, SimulateError> {
    let mut body = id.to_be_bytes().to_vec();
    body.extend(string(topic));
    body.push(quality);
    packet(0x82, &body)
}

/// SUBACK that grants the `QoS` `quality` (section 3.9).
pub(crate) fn suback(id: u16, quality: u8) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    vec![0x90, 3, high, low, quality]
}

/// PUBLISH (section 3.3): `QoS` 1 with an identifier, `QoS` 0 without.
pub(crate) fn publish(topic: &str, id: Option<u16>, payload: &[u8]) -> Result<Vec<u8>, SimulateError> {
    let mut body = string(topic);
    body.extend(id.iter().flat_map(|id| id.to_be_bytes()));
    body.extend(payload);
    packet(if id.is_some() { 0x32 } else { 0x30 }, &body)
}

/// PUBACK (section 3.4).
pub(crate) fn puback(id: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    vec![0x40, 2, high, low]
}

/// PINGREQ (section 3.12).
pub(crate) const PINGREQ: [u8; 2] = [0xc0, 0];
/// PINGRESP (section 3.13).
pub(crate) const PINGRESP: [u8; 2] = [0xd0, 0];
/// DISCONNECT (section 3.14).
pub(crate) const DISCONNECT: [u8; 2] = [0xe0, 0];

fn packet(first: u8, body: &[u8]) -> Result<Vec<u8>, SimulateError> {
    if body.len() > MAX_REMAINING {
        return Err(SimulateError(format!(
            "a message of {} bytes is too long for MQTT, whose limit is {MAX_REMAINING}: shorten the values of actions",
            body.len()
        )));
    }
    let mut packet = vec![first];
    packet.extend(remaining_length(body.len()));
    packet.extend(body);
    Ok(packet)
}

/// Seven bits in each byte, the lowest first; the eighth bit means that another byte follows (section 2.2.3).
fn remaining_length(mut length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (length & 0x7f) as u8;
        length >>= 7;
        if length == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A string with its two length bytes. Names and topics here are short.
fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u16).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_length_grows_as_in_table_2_4() {
        assert_eq!(remaining_length(0), [0]);
        assert_eq!(remaining_length(127), [0x7f]);
        assert_eq!(remaining_length(128), [0x80, 0x01]);
        assert_eq!(remaining_length(16_383), [0xff, 0x7f]);
        assert_eq!(remaining_length(16_384), [0x80, 0x80, 0x01]);
        assert_eq!(remaining_length(2_097_151), [0xff, 0xff, 0x7f]);
        assert_eq!(remaining_length(2_097_152), [0x80, 0x80, 0x80, 0x01]);
        assert_eq!(remaining_length(268_435_455), [0xff, 0xff, 0xff, 0x7f]);
    }

    #[test]
    fn packets_are_encoded_as_specified() {
        assert_eq!(publish("a/b", Some(10), b"hi").unwrap(), [0x32, 9, 0, 3, b'a', b'/', b'b', 0, 10, b'h', b'i']);
        assert_eq!(publish("a/b", None, b"hi").unwrap(), [0x30, 7, 0, 3, b'a', b'/', b'b', b'h', b'i']);
        assert_eq!(subscribe(1, "t", 1).unwrap(), [0x82, 6, 0, 1, 0, 1, b't', 1]);
        let connect = connect("g", 60).unwrap();
        assert_eq!(connect, [0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0, 60, 0, 1, b'g']);
        assert_eq!(puback(258), [0x40, 2, 1, 2]);
    }

    #[test]
    fn the_length_takes_a_second_byte_from_128_on() {
        assert_eq!(publish("abcd", None, &[0; 121]).unwrap().len(), 2 + 6 + 121);
        assert_eq!(publish("abcd", None, &[0; 122]).unwrap().len(), 3 + 6 + 122);
    }
}
