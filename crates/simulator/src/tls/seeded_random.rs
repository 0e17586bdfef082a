//! The random bytes of rustls. A provider's source must be `'static`, so it is a value without content that draws from
//! the generator installed on this thread.

use std::cell::RefCell;
use std::marker::PhantomData;

use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rustls::crypto::{GetRandomFailed, SecureRandom};

thread_local! {
    static GENERATOR: RefCell<Option<ChaCha20Rng>> = const { RefCell::new(None) };
}

/// The random bytes of a simulated TLS session. Without an [`InstalledGenerator`] generator there are none.
#[derive(Debug)]
pub(super) struct SeededRandom;

impl SecureRandom for SeededRandom {
    fn fill(&self, buf: &mut [u8]) -> Result<(), GetRandomFailed> {
        GENERATOR.with_borrow_mut(|generator| {
            let generator = generator.as_mut().ok_or(GetRandomFailed)?;
            generator.fill_bytes(buf);
            Ok(())
        })
    }
}

/// While this lives, [`SeededRandom`] draws from its generator on this thread; it gives way to the one before when dropped.
#[derive(Debug)]
pub(super) struct InstalledGenerator {
    before: Option<ChaCha20Rng>,
    this_thread: PhantomData<*const ()>,
}

impl InstalledGenerator {
    pub(super) fn new(generator: ChaCha20Rng) -> Self {
        Self { before: GENERATOR.replace(Some(generator)), this_thread: PhantomData }
    }
}

impl Drop for InstalledGenerator {
    fn drop(&mut self) {
        GENERATOR.set(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn bytes() -> Option<[u8; 8]> {
        let mut bytes = [0; 8];
        SeededRandom.fill(&mut bytes).ok().map(|()| bytes)
    }

    #[test]
    fn seeded_while_installed() {
        let draw = |seed| {
            let _installed = InstalledGenerator::new(ChaCha20Rng::seed_from_u64(seed));
            bytes().unwrap()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(bytes(), None);
    }
}
