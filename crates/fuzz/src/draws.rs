//! Reads an input as a sequence of decisions. Bytes after its end are 0, so every input is a complete problem.

pub struct Draws<'a> {
    bytes: &'a [u8],
}

impl<'a> Draws<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&first, rest)) => {
                self.bytes = rest;
                first
            }
            None => 0,
        }
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Draws a number from 0 to `n` - 1, but at most 65535; 0 if `n` is 0. If `n` is at most 256, it takes one byte of
    /// the input, otherwise two.
    pub fn below(&mut self, n: u32) -> u32 {
        let drawn =
            if n <= 256 { u32::from(self.byte()) } else { u32::from_le_bytes([self.byte(), self.byte(), 0, 0]) };
        if n == 0 { 0 } else { drawn % n }
    }

    /// Returns true in about one of `n` draws, and never at the end of the input.
    pub fn once_in(&mut self, n: u32) -> bool {
        !self.is_empty() && self.below(n) == n - 1
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }
}
