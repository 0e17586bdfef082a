//! The CBC suites of TLS 1.2 (RFC 5246 section 6.2.3.2), which rustls lacks: a MAC, then padding, then AES-CBC.
//!
//! Only for the simulator: decryption is not constant-time, so a real peer would be a padding oracle. rustls can use
//! these suites because their key block (section 6.3: two MAC keys, then two cipher keys) has the shape of that of an
//! AEAD: two keys, then the fixed parts of two nonces.

use std::marker::PhantomData;
use std::sync::LazyLock;

use aes::cipher::block_padding::NoPadding;
use aes::cipher::consts::U16;
use aes::cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser, InnerIvInit,
};
use aes::{Aes128, Aes256};
use cbc::{Decryptor, Encryptor};
use hmac::digest::OutputSizeUser;
use hmac::digest::common::KeySizeUser;
use hmac::digest::typenum::Unsigned;
use hmac::{Hmac, KeyInit, Mac};
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, KeyBlockShape, MessageDecrypter, MessageEncrypter,
    OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload, Tls12AeadAlgorithm, UnsupportedOperationError,
    make_tls12_aad,
};
use rustls::crypto::{CipherSuiteCommon, SecureRandom, ring};
use rustls::{CipherSuite, ConnectionTrafficSecrets, Error, SupportedCipherSuite, Tls12CipherSuite};
use sha1::Sha1;
use sha2::Sha256;

use super::SeededRandom;

/// The size of an AES block and of an initialisation vector, in bytes.
const BLOCK: usize = 16;

/// AES-128 and AES-256 with a MAC of SHA-1 (RFC 8422), and AES-128 with one of SHA-256 (RFC 5289).
pub(super) fn suites() -> [SupportedCipherSuite; 3] {
    static SUITES: LazyLock<[Tls12CipherSuite; 3]> = LazyLock::new(|| {
        [
            like_gcm(
                CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
                &MacThenEncrypt::<Aes128, Hmac<Sha1>>(PhantomData),
            ),
            like_gcm(
                CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
                &MacThenEncrypt::<Aes256, Hmac<Sha1>>(PhantomData),
            ),
            like_gcm(
                CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
                &MacThenEncrypt::<Aes128, Hmac<Sha256>>(PhantomData),
            ),
        ]
    });
    SUITES.each_ref().map(SupportedCipherSuite::Tls12)
}

/// A suite that differs from ring's AES-128-GCM only in its cipher: all have ECDHE, ECDSA and a PRF with SHA-256.
fn like_gcm(suite: CipherSuite, algorithm: &'static dyn Tls12AeadAlgorithm) -> Tls12CipherSuite {
    let SupportedCipherSuite::Tls12(gcm) = ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 else {
        unreachable!("this is a suite of TLS 1.2")
    };
    Tls12CipherSuite {
        common: CipherSuiteCommon { suite, ..gcm.common },
        prf_provider: gcm.prf_provider,
        kx: gcm.kx,
        sign: gcm.sign,
        aead_alg: algorithm,
    }
}

/// MAC-then-encrypt with the cipher `A` and the MAC `M`.
struct MacThenEncrypt<A, M>(PhantomData<fn() -> (A, M)>);

trait Shared: KeyInit + Clone + Send + Sync + 'static {}
impl<T: KeyInit + Clone + Send + Sync + 'static> Shared for T {}

trait AesCipher: Shared + BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> {}
impl<A: Shared + BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16>> AesCipher for A {}

impl<A: AesCipher, M: Mac + Shared> Tls12AeadAlgorithm for MacThenEncrypt<A, M> {
    fn encrypter(&self, key: AeadKey, iv: &[u8], _: &[u8]) -> Box<dyn MessageEncrypter> {
        Box::new(DirectionKeys::<A, M>::new(key.as_ref(), iv))
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        Box::new(DirectionKeys::<A, M>::new(key.as_ref(), iv))
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        KeyBlockShape {
            enc_key_len: <M as OutputSizeUser>::OutputSize::USIZE,
            fixed_iv_len: <A as KeySizeUser>::KeySize::USIZE,
            explicit_nonce_len: 0,
        }
    }

    fn extract_keys(
        &self,
        _: AeadKey,
        _: &[u8],
        _: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

/// The keys of one direction of a connection.
struct DirectionKeys<A, M> {
    /// `None` if rustls passes keys of the wrong length.
    keys: Option<(A, M)>,
}

impl<A: AesCipher, M: Mac + Shared> DirectionKeys<A, M> {
    fn new(mac: &[u8], cipher: &[u8]) -> Self {
        Self { keys: A::new_from_slice(cipher).ok().zip(<M as KeyInit>::new_from_slice(mac).ok()) }
    }

    const MAC: usize = <M as OutputSizeUser>::OutputSize::USIZE;
}

impl<A: AesCipher, M: Mac + Shared> MessageEncrypter for DirectionKeys<A, M> {
    fn encrypt(&mut self, msg: OutboundPlainMessage<'_>, seq: u64) -> Result<OutboundOpaqueMessage, Error> {
        let (cipher, mac) = self.keys.as_ref().ok_or(Error::EncryptError)?;
        let length = self.encrypted_payload_len(msg.payload.len());
        let mut record = vec![0; BLOCK];
        SeededRandom.fill(&mut record)?;
        let encryptor = Encryptor::inner_iv_slice_init(cipher.clone(), &record).map_err(|_| Error::EncryptError)?;
        msg.payload.copy_to_vec(&mut record);
        let mac = mac.clone().chain_update(make_tls12_aad(seq, msg.typ, msg.version, msg.payload.len()));
        record.extend(mac.chain_update(record.get(BLOCK..).unwrap_or_default()).finalize().into_bytes());
        // Each padding byte holds the number of the other padding bytes.
        let padding = (length - record.len() - 1) as u8;
        record.resize(length, padding);
        let blocks = record.get_mut(BLOCK..).unwrap_or_default();
        let whole = blocks.len();
        encryptor.encrypt_padded::<NoPadding>(blocks, whole).map_err(|_| Error::EncryptError)?;
        Ok(OutboundOpaqueMessage::new(msg.typ, msg.version, PrefixedPayload::from(&*record)))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        // At least one byte of padding.
        BLOCK + (payload_len + Self::MAC) / BLOCK * BLOCK + BLOCK
    }
}

impl<A: AesCipher, M: Mac + Shared> MessageDecrypter for DirectionKeys<A, M> {
    fn decrypt<'a>(&mut self, mut msg: InboundOpaqueMessage<'a>, seq: u64) -> Result<InboundPlainMessage<'a>, Error> {
        let (cipher, mac) = self.keys.as_ref().ok_or(Error::DecryptError)?;
        let (typ, version) = (msg.typ, msg.version);
        let (vector, blocks) = msg.payload.split_at_mut_checked(BLOCK).ok_or(Error::DecryptError)?;
        let decryptor = Decryptor::inner_iv_slice_init(cipher.clone(), vector).map_err(|_| Error::DecryptError)?;
        let padded = decryptor.decrypt_padded::<NoPadding>(blocks).map_err(|_| Error::DecryptError)?;
        let unpadded = unpadded(padded).ok_or(Error::DecryptError)?;
        let length = unpadded.len().checked_sub(Self::MAC).ok_or(Error::DecryptError)?;
        let (message, tag) = unpadded.split_at(length);
        let mac = mac.clone().chain_update(make_tls12_aad(seq, typ, version, length));
        mac.chain_update(message).verify_slice(tag).map_err(|_| Error::DecryptError)?;
        Ok(msg.into_plain_message_range(BLOCK..BLOCK + length))
    }
}

/// The content without its padding, if the padding is valid.
fn unpadded(padded: &[u8]) -> Option<&[u8]> {
    let padding_length = *padded.last()?;
    let (message, padding) = padded.split_at(padded.len().checked_sub(usize::from(padding_length) + 1)?);
    padding.iter().all(|byte| *byte == padding_length).then_some(message)
}

#[cfg(test)]
mod tests;
