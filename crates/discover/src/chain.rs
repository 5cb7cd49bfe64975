//! The hash chain of submissions. If the programs of two ranks differ, their links differ from the first different
//! submission on.

use unisono_base::mix;

/// One hash for each submission, computed from all submissions so far.
#[derive(Clone, Default, Debug)]
pub struct Chain {
    links: Vec<u64>,
    /// The number of links that were dropped from `links`.
    forgotten: u64,
    end: u64,
}

impl Chain {
    pub fn push(&mut self, digest: u64) {
        self.end = mix(self.end.rotate_left(1) ^ digest).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.links.push(self.end);
    }

    /// Returns the hash of all submissions, which is equal on ranks that submitted the same program.
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn len(&self) -> u64 {
        self.forgotten + self.links.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of dropped links, and the stored links.
    pub fn links(&self) -> (u64, &[u64]) {
        (self.forgotten, &self.links)
    }

    /// Drops the stored links. The caller has compared them with those of all other ranks.
    pub fn agreed(&mut self) {
        self.forgotten = self.len();
        self.links.clear();
    }
}

/// Returns a hash of a text that is the same on every rank.
pub fn digest_of(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |h, b| mix(h ^ u64::from(b)).wrapping_add(1))
}
