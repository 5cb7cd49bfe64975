//! The engine's state of a task, in 8 bytes.

/// State of a task, and its rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Flags in the upper bits, and a number in the lower bits. Until the task is free, the number counts the tasks for
    /// which the task waits. Afterwards, it links the task to the next task in a list of `Matching`: 1 + the id of the
    /// next task, or 0 at the end of the list. A waiting task is in no list.
    state: u32,
    pub owner: u32,
}

const DONE: u32 = 1 << 31;
/// Flag: the task waits for no other task.
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

    /// Returns the number of tasks for which this task still waits.
    pub fn pending(self) -> u32 {
        if self.is_free() { 0 } else { self.state & BELOW }
    }

    /// Adds one task for which this task waits. Called only before the run.
    pub fn wait(&mut self) {
        self.state = (self.state & !FREE) + 1;
    }

    /// Removes one task for which this task waits. Returns true if none remains.
    #[inline]
    pub fn let_go(&mut self) -> bool {
        self.state -= 1;
        if self.state == 0 {
            self.state = FREE;
        }
        self.state == FREE
    }

    /// Marks the task as done. Returns false if the task was already done.
    #[inline]
    pub fn finish(&mut self) -> bool {
        let was_done = self.is_done();
        self.state |= DONE;
        !was_done
    }

    /// Returns 1 + the id of the next task in this task's list, or 0 at the end of the list. The task must be free.
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
