//! The seed of the random numbers of a proof.

use std::{fmt, str::FromStr};

use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use serde::{Serialize, Serializer};

use super::ProofOptionError;

/// A seed of 128 bits; printed and read as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(u128);

impl Seed {
    /// Returns a seed from the operating system.
    ///
    /// # Panics
    /// Panics if the operating system provides no random numbers. A proof by fingerprint would then show nothing.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
        Self(u128::from_be_bytes(bytes))
    }

    pub(crate) fn generator(self) -> ChaCha20Rng {
        let mut key = [0; 32];
        key[..16].copy_from_slice(&self.0.to_be_bytes());
        key[16..].copy_from_slice(b"unisono-verify-1");
        ChaCha20Rng::from_seed(key)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Seed {
    type Err = ProofOptionError;

    fn from_str(text: &str) -> Result<Self, ProofOptionError> {
        let digits = (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
        let seed = u128::from_str_radix(text, 16).ok().filter(|_| digits);
        seed.map(Self).ok_or_else(|| ProofOptionError::Seed(text.chars().take(40).collect()))
    }
}

impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
