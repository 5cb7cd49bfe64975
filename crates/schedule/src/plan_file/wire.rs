//! Encodes and decodes little-endian numbers and texts, and computes a checksum.

use unisono_base::mix;

use super::PlanFileError;

#[derive(Default)]
pub struct Out(pub Vec<u8>);

impl Out {
    pub fn u8(&mut self, x: u8) {
        self.0.push(x);
    }

    pub fn u32(&mut self, x: u32) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    pub fn u64(&mut self, x: u64) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    pub fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
    }
}

pub struct In<'a> {
    bytes: &'a [u8],
    at: usize,
}

pub type Got<T> = Result<T, PlanFileError>;

pub fn damaged<T>(what: impl Into<String>) -> Got<T> {
    Err(PlanFileError::Damaged { what: what.into() })
}

impl<'a> In<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn take(&mut self, len: usize) -> Got<&'a [u8]> {
        match self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => damaged("a part ends too early"),
        }
    }

    fn array<const N: usize>(&mut self) -> Got<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub fn u8(&mut self) -> Got<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u32(&mut self) -> Got<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Got<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn text(&mut self) -> Got<String> {
        let len = self.u32()? as usize;
        match std::str::from_utf8(self.take(len)?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => damaged("a text is not UTF-8"),
        }
    }

    /// Reads a number of rows, each of at least `row_bytes` bytes, and checks that the remaining bytes can hold them.
    pub fn count(&mut self, row_bytes: usize) -> Got<usize> {
        let count = self.u32()? as usize;
        if count.saturating_mul(row_bytes) > self.bytes.len() - self.at {
            return damaged("a table is longer than the file");
        }
        Ok(count)
    }

    pub fn end(&self) -> Got<()> {
        if self.at == self.bytes.len() { Ok(()) } else { damaged("a part has bytes left over") }
    }
}

/// Returns a 64-bit checksum, which is never 0. Any change of the bytes changes the checksum with near certainty. It
/// detects damage, not forgery.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = mix(bytes.len() as u64 ^ 0x756e_6973_6f6e_6f00);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = mix(sum ^ u64::from_le_bytes(word)).wrapping_add(sum.rotate_left(23));
    }
    sum.max(1)
}
