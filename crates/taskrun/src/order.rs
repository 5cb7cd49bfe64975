//! The order of a rank's commands: which are complete, and which may start.

/// The commands of a run by number, with ascending numbers from `first` on.
pub struct Order {
    first: u32,
    open: Vec<bool>,
    left: usize,
    /// The index of the first command that is not complete.
    lowest: usize,
}

impl Order {
    /// Creates an order of `count` incomplete commands, whose numbers ascend from `first` without gaps.
    pub fn new(first: u32, count: usize) -> Self {
        Self { first, open: vec![true; count], left: count, lowest: 0 }
    }

    pub fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Returns whether the commands in `on`, and all commands up to number `until`, are complete. Numbers of commands
    /// of earlier runs count as complete.
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

    /// Returns the index of a command; `None` for commands of other runs. Those of earlier runs are complete.
    fn place(&self, number: u32) -> Option<usize> {
        let at = number.checked_sub(self.first)? as usize;
        (at < self.open.len()).then_some(at)
    }
}
