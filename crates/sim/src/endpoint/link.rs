//! What the engine keeps for each task: 8 bytes.

/// The state of a task, and its rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Flags, and in the bits below them the number of tasks that it still waits for, or once it is free the next task
    /// of its list of the matching: 1 more than that task, 0 for none. A task that waits for others is in no list.
    state: u32,
    pub owner: u32,
}

/// The task is done.
const DONE: u32 = 1 << 31;
/// The task waits for no other task.
const FREE: u32 = 1 << 30;
const BELOW: u32 = FREE - 1;

impl Link {
    /// A task of rank `owner` that waits for nothing.
    pub fn new(owner: u32) -> Self {
        Self { state: FREE, owner }
    }

    pub fn is_done(self) -> bool {
        self.state & DONE != 0
    }

    pub fn is_free(self) -> bool {
        self.state & FREE != 0
    }

    /// The tasks that it waits for.
    pub fn pending(self) -> u32 {
        if self.is_free() { 0 } else { self.state & BELOW }
    }

    /// Waits for one task more; before the run.
    pub fn wait(&mut self) {
        self.state = (self.state & !FREE) + 1;
    }

    /// Waits for one task less; returns whether that was the last one.
    #[inline]
    pub fn let_go(&mut self) -> bool {
        self.state -= 1;
        if self.state == 0 {
            self.state = FREE;
        }
        self.state == FREE
    }

    /// Marks the task as done; returns whether it was not before.
    #[inline]
    pub fn finish(&mut self) -> bool {
        let was_done = self.is_done();
        self.state |= DONE;
        !was_done
    }

    /// The next task of its list, of a free task.
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
