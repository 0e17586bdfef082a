//! JSON objects with a digest of what else they say, so that one that was changed or damaged is not believed.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sizeleak_platform::storage::read_regular;

/// The key of the digest.
const DIGEST: &str = "digest";

/// The object as text, with its digest.
pub(crate) fn to_checked_json(object: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut json = serde_json::to_value(object)?;
    let digest = digest_of(&json);
    if let Some(object) = json.as_object_mut() {
        object.insert(DIGEST.to_owned(), digest);
    }
    let mut text = serde_json::to_vec_pretty(&json)?;
    text.push(b'\n');
    Ok(text)
}

/// The object in a file; `None` if there is none, or not as it was written.
pub(crate) fn read_checked_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut json: Value = serde_json::from_slice(&read_regular(path).ok()?).ok()?;
    let digest = json.as_object_mut()?.remove(DIGEST)?;
    if digest != digest_of(&json) {
        return None;
    }
    serde_json::from_value(json).ok()
}

fn digest_of(json: &Value) -> Value {
    Value::String(blake3::hash(json.to_string().as_bytes()).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    /// White space between values is the one thing that may change.
    #[test]
    fn no_changed_byte_of_a_value_is_believed() {
        let object = BTreeMap::from([("bytes", 1_767_686_407_154_743_000_i64), ("at", -7)]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("object.json");
        let text = to_checked_json(&object).unwrap();
        fs::write(&path, &text).unwrap();
        let read = || read_checked_json::<BTreeMap<String, i64>>(&path);
        assert_eq!(read().unwrap()["at"], -7);
        for at in (0..text.len()).filter(|at| !text[*at].is_ascii_whitespace()) {
            let mut changed = text.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            assert_eq!(read(), None, "byte {at}");
        }
    }
}
