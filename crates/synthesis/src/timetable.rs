//! When each message of a forest begins.
//!
//! The links of a forest are busy nearly all the time, so what each sends first decides how long others wait. Messages
//! begin as soon as their links are free and their data is there; of those that wait for a link, the one with the longest chain
//! of messages behind it goes first (list scheduling by critical paths, Graham, 1969). A schedule that sends in the order of
//! these times keeps all links busy.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use unisono_base::{interrupt::poll, narrow};

/// One message.
pub(crate) struct Job {
    /// The message that brings its data; earlier in the list.
    pub after: Option<u32>,
    /// First of [`Jobs::links`].
    pub first: u32,
    /// Its length.
    pub units: f64,
}

/// Messages with the links that each goes over, none of which has two messages at once.
#[derive(Default)]
pub(crate) struct Jobs {
    pub list: Vec<Job>,
    pub links: Vec<u32>,
}

impl Jobs {
    /// Adds a message of one unit.
    pub(crate) fn add(&mut self, after: Option<u32>, links: impl IntoIterator<Item = u32>) -> u32 {
        self.add_units(after, links, 1.0)
    }

    pub(crate) fn add_units(&mut self, after: Option<u32>, links: impl IntoIterator<Item = u32>, units: f64) -> u32 {
        let job = Job { after, first: narrow(self.links.len()), units };
        self.links.extend(links);
        self.list.push(job);
        narrow::<u32>(self.list.len()) - 1
    }

    fn links_of(&self, job: usize) -> &[u32] {
        let end = self.list.get(job + 1).map_or(self.links.len(), |next| next.first as usize);
        &self.links[self.list[job].first as usize..end]
    }

    /// Begins and the last end. A message holds a link for its units over the link's rate, and is there `hop` a link later.
    pub(crate) fn begins(&self, rates: &[f64], hop: f64) -> (Vec<f64>, f64) {
        let count = self.list.len();
        let takes: Vec<f64> = (0..count)
            .map(|job| {
                let slowest = self.links_of(job).iter().map(|&l| rates[l as usize]).fold(f64::INFINITY, f64::min);
                self.list[job].units / slowest + hop * self.links_of(job).len() as f64
            })
            .collect();
        // The longest chain from the begin of each message, and the messages that it brings data for.
        let mut chain = takes.clone();
        let mut behind = vec![Vec::new(); count];
        for job in (0..count).rev() {
            poll();
            if let Some(before) = self.list[job].after {
                let longer = takes[before as usize] + chain[job];
                chain[before as usize] = chain[before as usize].max(longer);
                behind[before as usize].push(narrow::<u32>(job));
            }
        }
        let mut free = vec![0.0; rates.len()];
        let mut waiting: Vec<BTreeSet<(Reverse<Ordered>, u32)>> = vec![BTreeSet::new(); rates.len()];
        let mut events: BinaryHeap<Reverse<(Ordered, Event)>> = BinaryHeap::new();
        for job in (0..count).filter(|&job| self.list[job].after.is_none()) {
            events.push(Reverse((Ordered(0.0), Event::Ready(narrow(job)))));
        }
        let (mut begins, mut last) = (vec![0.0; count], 0.0_f64);
        while let Some(Reverse((Ordered(now), event))) = events.pop() {
            poll();
            let link = match event {
                Event::Ready(job) => {
                    // What else is ready now is weighed before any link is given away.
                    for &link in self.links_of(job as usize) {
                        waiting[link as usize].insert((Reverse(Ordered(chain[job as usize])), job));
                        if free[link as usize] <= now {
                            events.push(Reverse((Ordered(now), Event::Free(link))));
                        }
                    }
                    continue;
                }
                Event::Free(link) => link as usize,
            };
            if free[link] > now {
                continue;
            }
            // A message that waits for another link lets the next one go first.
            let can_begin = |job: u32| self.links_of(job as usize).iter().all(|&l| free[l as usize] <= now);
            let Some(&(key, job)) = waiting[link].iter().take(MOST_LOOKED_AT).find(|(_, job)| can_begin(*job)) else {
                continue;
            };
            let at = job as usize;
            begins[at] = now;
            for &l in self.links_of(at) {
                waiting[l as usize].remove(&(key, job));
                free[l as usize] = now + self.list[at].units / rates[l as usize];
                events.push(Reverse((Ordered(free[l as usize]), Event::Free(l))));
            }
            let end = now + takes[at];
            last = last.max(end);
            events.extend(behind[at].iter().map(|&next| Reverse((Ordered(end), Event::Ready(next)))));
        }
        (begins, last)
    }
}

/// Messages that are tried when a link is free.
const MOST_LOOKED_AT: usize = 64;

/// At one time all messages become ready before any link is given to one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ready(u32),
    Free(u32),
}

/// A time that is a number.
#[derive(Clone, Copy, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_chain_goes_first() {
        let mut jobs = Jobs::default();
        // Two messages over link 0; the second one is followed by one over link 1.
        jobs.add(None, [0]);
        let first = jobs.add(None, [0]);
        jobs.add(Some(first), [1]);
        assert_eq!(jobs.begins(&[1.0, 0.5], 0.25), (vec![1.0, 0.0, 1.25], 3.5));
    }
}
