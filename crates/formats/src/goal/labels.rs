//! The labels of one rank, with their tasks.

use rustc_hash::FxHashMap;
use unisono_base::{TaskId, narrow};

use super::line::{Word, Wrong, shown};

/// A number is stored in the table of numbered labels only if it is less than this constant plus four times the number
/// of labels so far. This limits the size of the table.
const MOST_FREE: usize = 1 << 10;

/// Tasks by label. If a label is defined twice, the first definition counts.
#[derive(Default)]
pub struct Labels {
    /// First byte of the rank's first label; 0 before the first label. Labels that consist of this letter and a number,
    /// such as `l17`, are numbered labels.
    letter: u8,
    /// Tasks of the numbered labels, by number: 1 + the task id, or 0 for none.
    numbered: Vec<u32>,
    defined: usize,
    /// Tasks of other labels of at most 16 bytes, which are packed into a number.
    short: FxHashMap<u128, TaskId>,
    long: FxHashMap<Box<[u8]>, TaskId>,
}

impl Labels {
    #[inline]
    pub fn define(&mut self, label: Word, task: TaskId) {
        if self.letter == 0 {
            self.letter = label.text[0];
        }
        self.defined += 1;
        let number = self.number(label).filter(|&number| number < MOST_FREE + 4 * self.defined);
        if let Some(number) = number {
            if number >= self.numbered.len() {
                self.numbered.resize((number + 1).next_power_of_two(), 0);
            }
            // A label may have been defined when its number was too large for this table; it is then in `short`.
            if self.numbered[number] == 0 && (self.short.is_empty() || self.find_other(label.text).is_none()) {
                self.numbered[number] = task.0 + 1;
            }
        } else {
            self.define_other(label.text, task);
        }
    }

    #[inline(never)]
    fn define_other(&mut self, label: &[u8], task: TaskId) {
        if let Some(packed) = pack(label) {
            self.short.entry(packed).or_insert(task);
        } else if !self.long.contains_key(label) {
            self.long.insert(label.into(), task);
        }
    }

    #[inline(always)]
    pub fn find(&self, label: Word) -> Result<TaskId, Wrong> {
        if let Some(&task) = self.number(label).and_then(|number| self.numbered.get(number))
            && task != 0
        {
            return Ok(TaskId(task - 1));
        }
        self.find_unnumbered(label.text)
    }

    #[inline(never)]
    fn find_unnumbered(&self, label: &[u8]) -> Result<TaskId, Wrong> {
        self.find_other(label).ok_or_else(|| match label {
            [] => "a label is missing after requires or irequires".to_owned(),
            text => format!("label '{}' is not defined in this rank so far", shown(text)),
        })
    }

    /// Returns the number of a numbered label; `None` for others.
    #[inline]
    fn number(&self, label: Word) -> Option<usize> {
        (label.number < u32::MAX && label.text[0] == self.letter).then(|| narrow(label.number))
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

fn pack(label: &[u8]) -> Option<u128> {
    let fold = |packed, &byte| packed << 8 | u128::from(byte);
    (label.len() <= 16).then(|| label.iter().fold(0, fold))
}
