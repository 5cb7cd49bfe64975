//! The ranks and tags of messages between the ranks of a communicator.
//!
//! Every process has one private communicator, which carries the planned calls of all the program's communicators. Each
//! process gives every communicator its own range of tags, and sends the first tag to the other ranks: a message to
//! rank `r` carries a tag of the range that `r` chose. So messages of two communicators cannot match, in any order of
//! calls and threads, and no further communicators are made.

use std::{
    ffi::c_int,
    sync::{Arc, Mutex, PoisonError},
};

use crate::library::{Comm, Failed, Outcome, int};

/// A rank of the program's communicator, with its rank and tags in the private communicator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub rank: c_int,
    /// The first tag of the range with which this peer receives.
    pub tag: c_int,
}

pub struct Route {
    pub comm: Comm,
    /// The first tag of the range with which this rank receives.
    tag: c_int,
    /// Peers by rank; None if ranks and tags are those of the private communicator.
    peers: Option<Box<[Peer]>>,
    /// This rank's range of tags, released on drop; None if tags are used unchanged.
    lease: Option<Lease>,
}

impl Route {
    /// Makes a route with unchanged ranks and tags, on a communicator that nothing else uses.
    pub fn direct(comm: Comm) -> Self {
        Self { comm, tag: 0, peers: None, lease: None }
    }

    pub fn over(comm: Comm, lease: Lease, peers: Box<[Peer]>) -> Self {
        Self { comm, tag: lease.first, peers: Some(peers), lease: Some(lease) }
    }

    /// Returns the receiver's rank and the tag, both in the private communicator, of a message to `rank`.
    #[inline]
    pub fn to(&self, rank: c_int, tag: u32) -> Outcome<(c_int, c_int)> {
        let tag = int(tag)?;
        match &self.peers {
            None => Ok((rank, tag)),
            Some(peers) => {
                let peer = peers[rank as usize];
                Ok((peer.rank, peer.tag.checked_add(tag).ok_or(Failed::COUNT)?))
            }
        }
    }

    /// Returns the sender's rank and the tag, both in the private communicator, of a message from `rank`.
    #[inline]
    pub fn from(&self, rank: c_int, tag: u32) -> Outcome<(c_int, c_int)> {
        let tag = int(tag)?.checked_add(self.tag).ok_or(Failed::COUNT)?;
        Ok((self.peers.as_ref().map_or(rank, |peers| peers[rank as usize].rank), tag))
    }

    /// Reserves the range of tags for ever, because messages with these tags may still arrive.
    pub fn abandon(&mut self) {
        std::mem::forget(self.lease.take());
    }
}

/// The ranges of tags that one process has in use.
#[derive(Clone, Debug)]
pub struct Tags {
    /// Disjoint ranges in use, each its first tag and the tag after its last, sorted.
    taken: Arc<Mutex<Vec<(c_int, c_int)>>>,
    largest: c_int,
}

impl Tags {
    pub fn new(largest: c_int) -> Self {
        Self { taken: Arc::default(), largest }
    }

    /// Takes the lowest free range of `count` tags, if there is one.
    pub fn lease(&self, count: c_int) -> Option<Lease> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut first, mut at) = (0, 0);
        for (k, &(start, end)) in taken.iter().enumerate() {
            if start - first >= count {
                break;
            }
            (first, at) = (end, k + 1);
        }
        let end = first.checked_add(count)?;
        if end.checked_sub(1)? > self.largest {
            return None;
        }
        taken.insert(at, (first, end));
        Some(Lease { tags: self.clone(), first })
    }
}

/// A range of tags in use, released on drop.
#[derive(Debug)]
pub struct Lease {
    tags: Tags,
    first: c_int,
}

impl Lease {
    pub fn first(&self) -> c_int {
        self.first
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut taken = self.tags.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|range| range.0 != self.first);
    }
}
