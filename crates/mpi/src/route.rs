//! Where the messages of a communicator's planned calls go.
//!
//! Every process has one private communicator, over which the planned calls of all the program's communicators run.
//! Each process gives every communicator of the program a range of tags that none of its others has, and tells the
//! ranges to the other ranks: a message for rank `r` carries a tag of the range that `r` chose. So messages of two
//! communicators never meet, whatever the order of their calls and whichever threads make them, and no communicator is
//! made for them.

use std::{
    ffi::c_int,
    sync::{Arc, Mutex, PoisonError},
};

use crate::library::{Comm, Failed, Outcome, int};

/// A rank of the program's communicator on the private one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub rank: c_int,
    /// The first tag of the range that this peer receives by.
    pub tag: c_int,
}

pub struct Route {
    pub comm: Comm,
    /// The first tag of the range that this rank receives by.
    tag: c_int,
    /// By rank; none where ranks and tags are those of the private communicator itself.
    peers: Option<Box<[Peer]>>,
    /// Returned when the route is dropped.
    lease: Option<Lease>,
}

impl Route {
    /// Ranks and tags as they are, on a communicator that nothing else uses.
    pub fn direct(comm: Comm) -> Self {
        Self { comm, tag: 0, peers: None, lease: None }
    }

    pub fn over(comm: Comm, lease: Lease, peers: Box<[Peer]>) -> Self {
        Self { comm, tag: lease.first, peers: Some(peers), lease: Some(lease) }
    }

    /// Rank and tag of a message to `rank`.
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

    /// Rank and tag of a message from `rank`.
    #[inline]
    pub fn from(&self, rank: c_int, tag: u32) -> Outcome<(c_int, c_int)> {
        let tag = int(tag)?.checked_add(self.tag).ok_or(Failed::COUNT)?;
        Ok((self.peers.as_ref().map_or(rank, |peers| peers[rank as usize].rank), tag))
    }

    /// Keeps the range of tags for ever: messages with them may still arrive.
    pub fn abandon(&mut self) {
        std::mem::forget(self.lease.take());
    }
}

/// Ranges of tags of one process.
#[derive(Clone, Debug)]
pub struct Tags {
    /// Sorted by the first tag; they do not overlap.
    taken: Arc<Mutex<Vec<(c_int, c_int)>>>,
    /// The largest tag of a message.
    largest: c_int,
}

impl Tags {
    pub fn new(largest: c_int) -> Self {
        Self { taken: Arc::default(), largest }
    }

    /// The lowest free range of so many tags, if there is one.
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

/// A range of tags in use.
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
