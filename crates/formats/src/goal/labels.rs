//! The labels of one rank, with their tasks.

use rustc_hash::FxHashMap;
use unisono_base::{TaskId, narrow};

use super::line::{Wrong, shown};

/// Greatest number of digits of a numbered label.
const MOST_DIGITS: usize = 9;
/// A label is in the table of numbered labels only if its number is less than this constant plus four times the number
/// of labels so far, which bounds the table.
const MOST_FREE: usize = 1 << 10;

/// Tasks by label; of two definitions of a label, the first one counts.
#[derive(Default)]
pub struct Labels {
    /// First byte of the rank's first label; labels of this letter and a number, such as `l17`, are numbered. 0 at
    /// first.
    letter: u8,
    /// Tasks of the numbered labels, by number: 1 + the task id, or 0 for none.
    numbered: Vec<u32>,
    defined: usize,
    /// Tasks of other labels of at most 16 bytes, which are packed into a number.
    short: FxHashMap<u128, TaskId>,
    long: FxHashMap<Box<[u8]>, TaskId>,
}

impl Labels {
    pub fn define(&mut self, label: &[u8], task: TaskId) {
        if self.letter == 0 {
            self.letter = label[0];
        }
        self.defined += 1;
        let number = number(self.letter, label).filter(|&number| number < MOST_FREE + 4 * self.defined);
        if let Some(number) = number {
            if number >= self.numbered.len() {
                self.numbered.resize(number + 1, 0);
            }
            // A label whose number was too large for this table when it was defined is in `short`.
            if self.numbered[number] == 0 && (self.short.is_empty() || self.find_other(label).is_none()) {
                self.numbered[number] = task.0 + 1;
            }
        } else if let Some(packed) = pack(label) {
            self.short.entry(packed).or_insert(task);
        } else if !self.long.contains_key(label) {
            self.long.insert(label.into(), task);
        }
    }

    pub fn find(&self, label: &[u8]) -> Result<TaskId, Wrong> {
        if let Some(&task) = number(self.letter, label).and_then(|number| self.numbered.get(number))
            && task != 0
        {
            return Ok(TaskId(task - 1));
        }
        self.find_other(label).ok_or_else(|| match label {
            [] => "a label is missing after requires or irequires".to_owned(),
            _ => format!("label '{}' is not defined in this rank so far", shown(label)),
        })
    }

    fn find_other(&self, label: &[u8]) -> Option<TaskId> {
        match pack(label) {
            Some(packed) => self.short.get(&packed).copied(),
            None => self.long.get(label).copied(),
        }
    }

    /// Removes all labels. A table that was large once is freed, because clearing it takes time for every rank.
    pub fn clear(&mut self) {
        if self.short.capacity() > 8 * self.short.len() + 64 {
            self.short = FxHashMap::default();
        }
        self.short.clear();
        self.long = FxHashMap::default();
        self.numbered.clear();
        (self.letter, self.defined) = (0, 0);
    }
}

/// Returns the number of a label of `letter` and at most [`MOST_DIGITS`] digits without leading zeros; `None` for
/// others.
#[inline(always)]
fn number(letter: u8, label: &[u8]) -> Option<usize> {
    let [first, digits @ ..] = label else { return None };
    let is_plain = *first == letter && matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && digits.len() <= MOST_DIGITS;
    let add = |number: u32, digit: &u8| digit.is_ascii_digit().then(|| 10 * number + u32::from(digit - b'0'));
    if is_plain { digits.iter().try_fold(0, add).map(narrow) } else { None }
}

fn pack(label: &[u8]) -> Option<u128> {
    let fold = |packed, &byte| packed << 8 | u128::from(byte);
    (label.len() <= 16).then(|| label.iter().fold(0, fold))
}
