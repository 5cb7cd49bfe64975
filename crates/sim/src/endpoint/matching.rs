//! Matches receives and messages: first come, first served, by source and tag.
//!
//! Each rank has a list of waiting receives and a list of waiting messages, searched from the start. When a search of a
//! list takes long, the list gets an index by (source, tag), so that a rank with very many receives does not take
//! quadratic time. In an indexed list, matched tasks are only marked. A later search that reaches marked tasks removes
//! them.

use std::hint::black_box;

use rustc_hash::FxHashMap;
use unisono_lower::tasks::ANY;

use super::link::Link;

/// A source and a tag, each of which may be [`ANY`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Envelope {
    pub source: u32,
    pub tag: u32,
}

impl Envelope {
    const ANYTHING: Self = Self { source: ANY, tag: ANY };

    fn matches(self, other: Self) -> bool {
        let fits = |a: u32, b: u32| a == b || a == ANY || b == ANY;
        fits(self.source, other.source) && fits(self.tag, other.tag)
    }

    fn exact(self) -> bool {
        self.source != ANY && self.tag != ANY
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Receives,
    Messages,
}

/// The head and the tail of a list, each as 1 + a task id; 0 if the list is empty.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    head: u32,
    tail: u32,
}

#[derive(Default)]
struct Index {
    /// The chains. A chain has the tasks of an indexed list with the same envelope, in order of arrival. The key is (`2
    /// * rank + side`, envelope).
    lists: FxHashMap<(u32, Envelope), List>,
    /// State of each task.
    tasks: Vec<Chained>,
    arrived: u32,
    /// True if a chain of tasks with any source or any tag exists, or has existed.
    has_wild: bool,
}

/// State of a task of an indexed list.
#[derive(Clone, Copy, Default)]
struct Chained {
    /// Order of arrival; `TAKEN` once the task is matched.
    order: u32,
    /// The next task of the same chain, as 1 + its id; 0 at the end of the chain.
    next: u32,
}

const TAKEN: u32 = u32::MAX;
/// A search that passes more tasks than this builds an index.
const LONG: u32 = 64;

pub(super) struct Matching {
    lists: Vec<[List; 2]>,
    indexed: Vec<[bool; 2]>,
    index: Index,
}

impl Matching {
    pub const RANK_BYTES: u128 = size_of::<[List; 2]>() as u128;

    pub fn new(ranks: u32) -> Self {
        Self { lists: vec![[List::default(); 2]; ranks as usize], indexed: Vec::new(), index: Index::default() }
    }

    #[inline]
    fn indexed(&self, rank: u32, side: Side) -> bool {
        !self.indexed.is_empty() && self.indexed[rank as usize][side as usize]
    }

    /// Reads the tables that [`Matching::take`] reads first, so that they are in the cache. Returns the task at the
    /// head of the rank's list or of the chain of an envelope; task 0 if there is none.
    #[inline]
    pub fn read_ahead(&self, rank: u32, side: Side, wanted: Envelope) -> u32 {
        if !self.indexed(rank, side) {
            return self.lists[rank as usize][side as usize].head.saturating_sub(1);
        }
        let chain = self.index.lists.get(&(2 * rank + side as u32, wanted));
        let task = chain.map_or(0, |chain| chain.head.saturating_sub(1));
        black_box(self.index.tasks[task as usize].order);
        task
    }

    /// Appends `task` to the list of `rank` and `side`.
    pub fn append(&mut self, links: &mut [Link], rank: u32, side: Side, task: u32, envelope: Envelope) {
        links[task as usize].set_next(0);
        let list = &mut self.lists[rank as usize][side as usize];
        if list.tail == 0 {
            list.head = task + 1;
        } else {
            links[list.tail as usize - 1].set_next(task + 1);
        }
        list.tail = task + 1;
        if self.indexed(rank, side) {
            self.index.add(2 * rank + side as u32, task, envelope);
        }
    }

    /// Removes and returns the first matching task of a list. `of` returns the envelope of a task.
    #[inline]
    pub fn take(
        &mut self,
        links: &mut [Link],
        rank: u32,
        side: Side,
        wanted: Envelope,
        of: impl Fn(u32, Link) -> Envelope,
    ) -> Option<u32> {
        if self.indexed(rank, side) {
            return self.take_indexed(links, rank, side, wanted, of);
        }
        let list = &mut self.lists[rank as usize][side as usize];
        let mut passed = 0;
        let found = take_from(links, list, |task, link| {
            passed += 1;
            if of(task, link).matches(wanted) { Step::Take } else { Step::Pass }
        });
        if passed > LONG {
            self.make_index(links, rank, side, of);
        }
        found
    }

    #[cold]
    fn make_index(&mut self, links: &[Link], rank: u32, side: Side, of: impl Fn(u32, Link) -> Envelope) {
        if self.indexed.is_empty() {
            self.indexed = vec![[false; 2]; self.lists.len()];
            self.index.tasks = vec![Chained::default(); links.len()];
        }
        self.indexed[rank as usize][side as usize] = true;
        let mut at = self.lists[rank as usize][side as usize].head;
        while at != 0 {
            let link = links[at as usize - 1];
            self.index.add(2 * rank + side as u32, at - 1, of(at - 1, link));
            at = link.next();
        }
    }

    fn take_indexed(
        &mut self,
        links: &mut [Link],
        rank: u32,
        side: Side,
        wanted: Envelope,
        of: impl Fn(u32, Link) -> Envelope,
    ) -> Option<u32> {
        let index = &mut self.index;
        let number = 2 * rank + side as u32;
        let found = if wanted.exact() {
            let exact = index.first(number, wanted, |_| true);
            let fits = |task| of(task, links[task as usize]).matches(wanted);
            let wild = if index.has_wild { index.first(number, Envelope::ANYTHING, fits) } else { None };
            exact.into_iter().chain(wild).min_by_key(|&task| index.tasks[task as usize].order)
        } else {
            let list = &mut self.lists[rank as usize][side as usize];
            take_from(links, list, |task, link| {
                if index.tasks[task as usize].order == TAKEN {
                    Step::Drop
                } else if of(task, link).matches(wanted) {
                    Step::Take
                } else {
                    Step::Pass
                }
            })
        };
        if let Some(task) = found {
            index.tasks[task as usize].order = TAKEN;
        }
        found
    }
}

enum Step {
    Take,
    Drop,
    Pass,
}

/// Walks a list. Removes tasks for which `step` returns `Drop`. Removes and returns the first task for which it returns
/// `Take`.
#[inline]
fn take_from(links: &mut [Link], list: &mut List, mut step: impl FnMut(u32, Link) -> Step) -> Option<u32> {
    let (mut before, mut at) = (0, list.head);
    while at != 0 {
        let link = links[at as usize - 1];
        let next = link.next();
        let step = step(at - 1, link);
        if let Step::Pass = step {
            before = at;
        } else {
            if before == 0 {
                list.head = next;
            } else {
                links[before as usize - 1].set_next(next);
            }
            if next == 0 {
                list.tail = before;
            }
            if let Step::Take = step {
                return Some(at - 1);
            }
        }
        at = next;
    }
    None
}

impl Index {
    /// Adds a task to its chain. All tasks of a list with any source or any tag share one chain.
    fn add(&mut self, number: u32, task: u32, envelope: Envelope) {
        let envelope = if envelope.exact() { envelope } else { Envelope::ANYTHING };
        self.has_wild |= envelope == Envelope::ANYTHING;
        self.tasks[task as usize] = Chained { order: self.arrived, next: 0 };
        self.arrived += 1;
        let list = self.lists.entry((number, envelope)).or_default();
        if list.tail == 0 {
            list.head = task + 1;
        } else {
            self.tasks[list.tail as usize - 1].next = task + 1;
        }
        list.tail = task + 1;
    }

    /// Returns the first task of a chain that `fits` accepts. Removes matched tasks before this task.
    fn first(&mut self, number: u32, envelope: Envelope, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let list = self.lists.get_mut(&(number, envelope))?;
        let (mut before, mut at) = (0, list.head);
        while at != 0 {
            let Chained { order, next } = self.tasks[at as usize - 1];
            if order == TAKEN {
                if before == 0 {
                    list.head = next;
                } else {
                    self.tasks[before as usize - 1].next = next;
                }
                if next == 0 {
                    list.tail = before;
                }
            } else if fits(at - 1) {
                return Some(at - 1);
            } else {
                before = at;
            }
            at = next;
        }
        if list.head == 0 {
            self.lists.remove(&(number, envelope));
        }
        None
    }
}
