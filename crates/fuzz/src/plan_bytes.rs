//! Changes the bytes of a `.plan` file and updates its checksums, so that the change reaches the decoder and the checks
//! of programs.
//!
//! This module depends on three properties of the format: the preamble (see [`unisono_schedule::plan_file`]), the
//! checksum, and rows of the header with the offset, length and checksum of each program. The rows are found by their
//! checksums.

use std::ops::Range;

use unisono_base::mix;

use crate::{
    Random,
    mutate::{change_bytes, overwrite_number},
};

const PREAMBLE: usize = 32;
const ROW: usize = 24;

/// Computes the checksum of [`unisono_schedule::plan_file`]; a test compares both.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = mix(bytes.len() as u64 ^ 0x756e_6973_6f6e_6f00);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = mix(sum ^ u64::from_le_bytes(word)).wrapping_add(sum.rotate_left(23));
    }
    sum.max(1)
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or_default()))
}

/// Parts of a file; `rows` are the positions of the programs' rows in the header.
pub struct Parts {
    preamble: Vec<u8>,
    header: Vec<u8>,
    programs: Vec<u8>,
    pub rows: Vec<usize>,
}

impl Parts {
    /// Splits a file; `None` if the preamble or the header is cut off.
    pub fn of(file: &[u8]) -> Option<Self> {
        let len = usize::try_from(number(file, 16)).ok()?;
        let end = PREAMBLE.checked_add(len).filter(|&end| end <= file.len())?;
        let (header, programs) = (file[PREAMBLE..end].to_vec(), file[end..].to_vec());
        let mut parts = Self { preamble: file[..PREAMBLE].to_vec(), header, programs, rows: Vec::new() };
        let mut at = 0;
        while at + ROW <= parts.header.len() {
            let found = parts
                .section(at)
                .is_some_and(|s| !s.is_empty() && checksum(&parts.programs[s]) == number(&parts.header, at + 16));
            if found {
                parts.rows.push(at);
            }
            at += if found { ROW } else { 1 };
        }
        Some(parts)
    }

    /// Returns the range of the program that a row describes, if it is inside the file.
    fn section(&self, row: usize) -> Option<Range<usize>> {
        let start = usize::try_from(number(&self.header, row)).ok()?;
        let len = usize::try_from(number(&self.header, row + 8)).ok()?;
        start.checked_add(len).filter(|&end| end <= self.programs.len()).map(|end| start..end)
    }

    /// Returns the file with updated checksums.
    pub fn joined(mut self) -> Vec<u8> {
        for row in std::mem::take(&mut self.rows) {
            if let Some(section) = self.section(row) {
                let sum = checksum(&self.programs[section]).to_le_bytes();
                self.header[row + 16..row + ROW].copy_from_slice(&sum);
            }
        }
        let sizes = [self.header.len() as u64, checksum(&self.header)].map(u64::to_le_bytes).concat();
        self.preamble[16..32].copy_from_slice(&sizes);
        [self.preamble, self.header, self.programs].concat()
    }
}

/// Returns a changed file. One in eight, or one that cannot be split, keeps its checksums.
pub fn change(file: &[u8], random: &mut Random) -> Vec<u8> {
    let parts = if random.chance(12) { None } else { Parts::of(file) };
    let Some(mut parts) = parts else {
        let mut changed = file.to_vec();
        change_bytes(&mut changed, random);
        return changed;
    };
    for _ in 0..*random.pick(&[1, 1, 1, 2, 3]) {
        let sections: Vec<Range<usize>> =
            parts.rows.iter().filter_map(|&row| parts.section(row)).filter(|s| !s.is_empty()).collect();
        match random.below(10) {
            // Numbers of programs have four bytes and may be at any offset, since kinds have one byte.
            0..=6 if !sections.is_empty() => {
                let section = random.pick(&sections).clone();
                let at = random.below(section.len());
                let program = &mut parts.programs[section];
                if random.chance(70) {
                    overwrite_number(program, at, random)
                } else {
                    program[at] = random.below(5) as u8
                }
            }
            0..=8 if !parts.header.is_empty() => {
                let at = random.below(parts.header.len());
                if random.chance(70) {
                    overwrite_number(&mut parts.header, at, random);
                } else {
                    parts.header[at] = random.bits() as u8;
                }
            }
            // Inserting or removing bytes before the rows moves them.
            _ => {
                let first = parts.rows.first().copied().unwrap_or(parts.header.len());
                let mut head = parts.header[..first].to_vec();
                change_bytes(&mut head, random);
                let moved = head.len() as isize - first as isize;
                parts.header.splice(..first, head);
                parts.rows.iter_mut().for_each(|row| *row = row.saturating_add_signed(moved));
            }
        }
    }
    parts.joined()
}
