//! The hash chain over submissions. Chains of ranks whose programs differ have different ends, and a comparison finds
//! the first submission that differs.

use unisono_base::mix;

/// One hash for each submission, over that and all earlier submissions.
#[derive(Clone, Default, Debug)]
pub struct Chain {
    links: Vec<u64>,
    /// The number of submissions before the first link that is kept.
    forgotten: u64,
    end: u64,
}

impl Chain {
    pub fn push(&mut self, digest: u64) {
        self.end = mix(self.end.rotate_left(1) ^ digest).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.links.push(self.end);
    }

    /// Returns the hash over all submissions, which is equal on ranks that submitted the same program.
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn len(&self) -> u64 {
        self.forgotten + self.links.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the hash after submission `number`, or none if it was forgotten or is not submitted yet.
    pub fn after(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.forgotten).and_then(|k| self.links.get(usize::try_from(k).ok()?)).copied()
    }

    pub fn links(&self) -> (u64, &[u64]) {
        (self.forgotten, &self.links)
    }

    /// Forgets the links, after all ranks have found them equal.
    pub fn agreed(&mut self) {
        self.forgotten = self.len();
        self.links.clear();
    }

    /// Returns the first submission on which two chains differ, if any. Each hash covers all earlier submissions, so
    /// all later hashes differ too and a binary search finds the first.
    pub fn first_difference(&self, other: &Chain) -> Option<u64> {
        let from = self.forgotten.max(other.forgotten);
        let both = self.len().min(other.len());
        let (mut low, mut high) = (from, both);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.after(middle) == other.after(middle) { low = middle + 1 } else { high = middle }
        }
        (low < both || self.len() != other.len()).then_some(low)
    }
}

/// Returns a hash of a text that is the same on every rank.
pub fn digest_of(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |h, b| mix(h ^ u64::from(b)).wrapping_add(1))
}
