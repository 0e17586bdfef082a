//! The random bytes of rustls. The generator of a provider must be `'static`, so it is an empty value that draws from
//! the generator installed on this thread.

use std::cell::RefCell;
use std::marker::PhantomData;

use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rustls::crypto::{GetRandomFailed, SecureRandom};

thread_local! {
    static GENERATOR: RefCell<Option<ChaCha20Rng>> = const { RefCell::new(None) };
}

/// Draws the random bytes of a simulated TLS session. Fails without an [`InstalledGenerator`].
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

/// Installs a generator for [`SeededRandom`] on this thread; when dropped, restores the previous one.
#[derive(Debug)]
pub(super) struct InstalledGenerator {
    previous: Option<ChaCha20Rng>,
    this_thread: PhantomData<*const ()>,
}

impl InstalledGenerator {
    pub(super) fn new(generator: ChaCha20Rng) -> Self {
        Self { previous: GENERATOR.replace(Some(generator)), this_thread: PhantomData }
    }
}

impl Drop for InstalledGenerator {
    fn drop(&mut self) {
        GENERATOR.set(self.previous.take());
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
    fn bytes_depend_on_the_installed_seed_only() {
        let draw = |seed| {
            let _installed = InstalledGenerator::new(ChaCha20Rng::seed_from_u64(seed));
            bytes().unwrap()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(bytes(), None);
    }
}
