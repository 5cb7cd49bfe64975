//! Routing tables, which list the hops that a rule allows for every node and destination.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use unisono_base::{mix, narrow};

use super::lengths::{distances, levels};
use crate::network::{Header, Hop, Plane, Routing};

/// A routing table. Equal lists of hops are stored once.
pub struct Table {
    name: &'static str,
    virtual_channels: u8,
    pub nodes: usize,
    /// The index of the list of hops for each destination and node. Entries of one destination are adjacent, since a
    /// packet reads only those.
    lists: Vec<u32>,
    /// The index in `hops` at which each list begins, and the end of the last list.
    first: Vec<u32>,
    hops: Vec<Hop>,
}

impl Table {
    /// Builds a table of all shortest paths. The virtual channel of a hop is the number of links that remain after it.
    pub fn shortest(name: &'static str, plane: &Plane, lengths: Option<&[u64]>) -> Self {
        let mut most = 1;
        let mut table = Builder::new(plane);
        for to in 0..plane.accelerators() {
            let distance = distances(plane, lengths, to);
            table.fill(to, |link, node, next| {
                let (left, links) = distance[next as usize];
                most = most.max(links + 1);
                ((left + lengths.map_or(1, |of| of[link as usize]), links + 1) == distance[node as usize])
                    .then_some(narrow(links))
            });
        }
        table.finish(name, narrow(most.min(u32::from(u8::MAX))))
    }

    /// Builds a table of paths up and down a tree. A packet goes up, towards the fewest cables, until a path that only
    /// goes down leads to its destination.
    pub fn up_down(plane: &Plane, root: u32) -> Self {
        let level = levels(plane, root);
        let order = |node: u32| (level[node as usize], node);
        let mut downwards: Vec<u32> = (0..plane.nodes()).collect();
        downwards.sort_unstable_by_key(|&node| order(node));
        let mut table = Builder::new(plane);
        for to in 0..plane.accelerators() {
            let down = only_down(plane, to, order);
            let mut left = down.clone();
            // Nodes are visited from the root down, so that the distances of all nodes above a node are known.
            for &node in &downwards {
                if left[node as usize] == u32::MAX {
                    let above = plane.leaving(node).map(|l| plane.link(l).to).filter(|&next| order(next) < order(node));
                    left[node as usize] =
                        above.map(|next| left[next as usize].saturating_add(1)).min().unwrap_or(u32::MAX);
                }
            }
            table.fill(to, |_, node, next| {
                let (here, there) = if down[node as usize] == u32::MAX {
                    if order(next) > order(node) {
                        return None;
                    }
                    (left[node as usize], left[next as usize])
                } else {
                    if order(next) < order(node) {
                        return None;
                    }
                    (down[node as usize], down[next as usize])
                };
                (there != u32::MAX && there + 1 == here).then_some(0)
            });
        }
        table.finish("up and down", 1)
    }
}

/// Returns the number of cables from each node to `to` on paths that only go down; `u32::MAX` if there is no such path.
/// `order` rises from the root down.
fn only_down(plane: &Plane, to: u32, order: impl Fn(u32) -> (u32, u32)) -> Vec<u32> {
    let mut distance = vec![u32::MAX; plane.nodes() as usize];
    distance[to as usize] = 0;
    let mut open = VecDeque::from([to]);
    while let Some(node) = open.pop_front() {
        for link in plane.leaving(node) {
            let above = plane.link(link).to;
            if order(above) < order(node) && distance[above as usize] == u32::MAX {
                distance[above as usize] = distance[node as usize] + 1;
                open.push_back(above);
            }
        }
    }
    distance
}

struct Builder<'a> {
    plane: &'a Plane,
    /// The index of a list of hops for each hash of hops.
    known: FxHashMap<u64, u32>,
    lists: Vec<u32>,
    first: Vec<u32>,
    hops: Vec<Hop>,
}

impl<'a> Builder<'a> {
    fn new(plane: &'a Plane) -> Self {
        let entries = plane.nodes() as usize * plane.accelerators() as usize;
        Self { plane, known: FxHashMap::default(), lists: vec![0; entries], first: vec![0], hops: Vec::new() }
    }

    /// Adds the hops to one destination. `channel` is called with a link, its node and the next node, and returns the
    /// virtual channel of the hop; `None` if packets may not take the link.
    fn fill(&mut self, to: u32, mut channel: impl FnMut(u32, u32, u32) -> Option<u8>) {
        let row = to as usize * self.plane.nodes() as usize;
        let mut found = Vec::new();
        for node in (0..self.plane.nodes()).filter(|&node| node != to) {
            let hop = |link: u32| Some(Hop { link, vc: channel(link, node, self.plane.link(link).to)? });
            found.clear();
            found.extend(self.plane.leaving(node).filter_map(hop));
            let hash = found.iter().fold(1, |hash, hop| mix(hash ^ (u64::from(hop.link) << 8 | u64::from(hop.vc))));
            let new = narrow(self.first.len() - 1);
            // If two different lists have the same hash, the second list is stored again at each use, which costs
            // memory only.
            let mut list = *self.known.entry(hash).or_insert(new);
            if list == new || self.hops_of(list) != found {
                self.hops.extend(&found);
                self.first.push(narrow(self.hops.len()));
                list = new;
            }
            self.lists[row + node as usize] = list;
        }
    }

    fn hops_of(&self, list: u32) -> &[Hop] {
        &self.hops[self.first[list as usize] as usize..self.first[list as usize + 1] as usize]
    }

    fn finish(self, name: &'static str, virtual_channels: u8) -> Table {
        Table {
            name,
            virtual_channels,
            nodes: self.plane.nodes() as usize,
            lists: self.lists,
            first: self.first,
            hops: self.hops,
        }
    }
}

impl Routing for Table {
    fn name(&self) -> &'static str {
        self.name
    }

    fn virtual_channels(&self) -> u8 {
        self.virtual_channels
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let list = self.lists[header.to as usize * self.nodes + at as usize] as usize;
        let (first, end) = (self.first[list] as usize, self.first[list + 1] as usize);
        hops.extend_from_slice(&self.hops[first..end]);
    }
}
