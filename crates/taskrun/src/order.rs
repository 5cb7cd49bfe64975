//! The order of a rank's commands: which are complete, and which may begin.

/// Commands by number, from the first command of a run on.
pub struct Order {
    first: u32,
    open: Vec<bool>,
    left: usize,
    /// All commands before this place are complete.
    lowest: usize,
}

impl Order {
    /// Makes an order of open commands, whose numbers ascend without gaps.
    pub fn new(first: u32, count: usize) -> Self {
        Self { first, open: vec![true; count], left: count, lowest: 0 }
    }

    pub fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Returns whether the commands of a list, and all commands up to a number, are complete.
    pub fn are_done(&self, on: &[u32], until: Option<u32>) -> bool {
        until.is_none_or(|until| self.place(until).is_none_or(|at| at < self.lowest))
            && on.iter().all(|&number| self.place(number).is_none_or(|at| !self.open[at]))
    }

    /// Marks a command as complete.
    pub fn close(&mut self, number: u32) {
        if let Some(at) = self.place(number) {
            self.left -= usize::from(std::mem::replace(&mut self.open[at], false));
            while self.open.get(self.lowest) == Some(&false) {
                self.lowest += 1;
            }
        }
    }

    /// Returns None for commands of earlier runs, which are complete.
    fn place(&self, number: u32) -> Option<usize> {
        let at = number.checked_sub(self.first)? as usize;
        (at < self.open.len()).then_some(at)
    }
}
