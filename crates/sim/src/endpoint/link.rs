//! The engine's state of a task, in 8 bytes.

/// The state of a task, and its rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Flags, and below them a number. Before the task is free, it counts the tasks for which the task waits; then it
    /// is the next task of its list of the matching, 1 more than that task, 0 for none. A waiting task is in no list.
    state: u32,
    pub owner: u32,
}

const DONE: u32 = 1 << 31;
/// The task waits for no other task.
const FREE: u32 = 1 << 30;
const BELOW: u32 = FREE - 1;

impl Link {
    /// Creates a task of rank `owner` that waits for no task.
    pub fn new(owner: u32) -> Self {
        Self { state: FREE, owner }
    }

    pub fn is_done(self) -> bool {
        self.state & DONE != 0
    }

    pub fn is_free(self) -> bool {
        self.state & FREE != 0
    }

    /// Returns the number of tasks for which it waits.
    pub fn pending(self) -> u32 {
        if self.is_free() { 0 } else { self.state & BELOW }
    }

    /// Adds a task for which it waits; before the run only.
    pub fn wait(&mut self) {
        self.state = (self.state & !FREE) + 1;
    }

    /// Removes a task for which it waits; returns whether it was the last one.
    #[inline]
    pub fn let_go(&mut self) -> bool {
        self.state -= 1;
        if self.state == 0 {
            self.state = FREE;
        }
        self.state == FREE
    }

    /// Marks the task as done; returns false if it was done before.
    #[inline]
    pub fn finish(&mut self) -> bool {
        let was_done = self.is_done();
        self.state |= DONE;
        !was_done
    }

    /// Returns the next task of a free task's list.
    #[inline]
    pub fn next(self) -> u32 {
        self.state & BELOW
    }

    #[inline]
    pub fn set_next(&mut self, next: u32) {
        self.state = self.state & !BELOW | next;
    }
}

const _: () = assert!(size_of::<Link>() == 8);
