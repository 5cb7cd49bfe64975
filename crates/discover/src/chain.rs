//! The hash chain over submissions: ranks whose programs differ have different ends, and the first difference has a
//! name.

use unisono_base::mix;

/// One value a submission, each over all submissions so far.
#[derive(Clone, Default, Debug)]
pub struct Chain {
    links: Vec<u64>,
    /// Submissions before the first link that is kept.
    forgotten: u64,
    end: u64,
}

impl Chain {
    pub fn push(&mut self, digest: u64) {
        self.end = mix(self.end.rotate_left(1) ^ digest).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.links.push(self.end);
    }

    /// Over all submissions; equal on ranks that submitted the same.
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn len(&self) -> u64 {
        self.forgotten + self.links.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value after submission `number`, unless it is forgotten or still to come.
    pub fn after(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.forgotten).and_then(|k| self.links.get(usize::try_from(k).ok()?)).copied()
    }

    /// The kept values, with the number of the first.
    pub fn links(&self) -> (u64, &[u64]) {
        (self.forgotten, &self.links)
    }

    /// Forgets what all ranks have found equal.
    pub fn agreed(&mut self) {
        self.forgotten = self.len();
        self.links.clear();
    }

    /// The first submission on which two chains differ, if any. Values are over all before, so they differ from there
    /// on.
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

/// A number for a text that is the same on every rank.
pub fn digest_of(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |h, b| mix(h ^ u64::from(b)).wrapping_add(1))
}
