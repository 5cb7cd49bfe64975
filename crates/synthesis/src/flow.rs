//! The largest flow between two nodes, by Dinic's algorithm (1970), with the smallest cut that proves it.

use unisono_base::interrupt::poll;

/// A network of arcs with whole capacities. Arc `2k + 1` is the reverse of arc `2k`.
pub(crate) struct Flow {
    to: Vec<u32>,
    /// The remaining capacity of each arc, reverse arcs included.
    left: Vec<u128>,
    /// The capacity with which each arc `2k` was added.
    capacity: Vec<u128>,
    /// The arcs that leave each node, reverse arcs included.
    at: Vec<Vec<u32>>,
}

impl Flow {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { to: Vec::new(), left: Vec::new(), capacity: Vec::new(), at: vec![Vec::new(); nodes] }
    }

    pub(crate) fn arc(&mut self, from: usize, to: usize, capacity: u128) {
        let number = u32::try_from(self.to.len()).expect("fewer arcs than 2^32");
        self.at[from].push(number);
        self.at[to].push(number + 1);
        self.to.extend([u32::try_from(to).expect("fewer nodes than 2^32"), u32::try_from(from).expect("the same")]);
        self.left.extend([capacity, 0]);
        self.capacity.push(capacity);
    }

    pub(crate) fn largest(&mut self, from: usize, to: usize) -> u128 {
        for (k, &capacity) in self.capacity.iter().enumerate() {
            (self.left[2 * k], self.left[2 * k + 1]) = (capacity, 0);
        }
        let mut total = 0;
        let mut level = Vec::new();
        loop {
            poll();
            self.levels(from, &mut level);
            if level[to] == u32::MAX {
                return total;
            }
            let mut next = vec![0; self.at.len()];
            loop {
                let pushed = self.push(from, to, &level, &mut next);
                if pushed == 0 {
                    break;
                }
                total += pushed;
            }
        }
    }

    /// Returns the flow on the arc with index `added` in the order of insertion, from 0, after [`Flow::largest`].
    pub(crate) fn carried(&self, added: usize) -> u128 {
        self.left[2 * added + 1]
    }

    /// Returns, for each node, whether it is on the side of `from` in a smallest cut, after [`Flow::largest`].
    pub(crate) fn side(&self, from: usize) -> Vec<bool> {
        let mut level = Vec::new();
        self.levels(from, &mut level);
        level.into_iter().map(|l| l != u32::MAX).collect()
    }

    /// Sets `level` to the number of arcs from `from` to each node along arcs with remaining capacity; `u32::MAX` for
    /// nodes out of reach.
    fn levels(&self, from: usize, level: &mut Vec<u32>) {
        level.clear();
        level.resize(self.at.len(), u32::MAX);
        level[from] = 0;
        let mut queue = vec![from];
        let mut k = 0;
        while let Some(&at) = queue.get(k) {
            k += 1;
            for &arc in &self.at[at] {
                let to = self.to[arc as usize] as usize;
                if self.left[arc as usize] > 0 && level[to] == u32::MAX {
                    level[to] = level[at] + 1;
                    queue.push(to);
                }
            }
        }
    }

    /// Pushes flow along one path on which every arc leads to the next level. Returns the amount pushed, 0 if there is
    /// no such path.
    fn push(&mut self, from: usize, to: usize, level: &[u32], next: &mut [usize]) -> u128 {
        let mut path: Vec<u32> = Vec::new();
        let mut at = from;
        loop {
            if at == to {
                let pushed = path.iter().map(|&arc| self.left[arc as usize]).min().unwrap_or(0);
                for &arc in &path {
                    self.left[arc as usize] -= pushed;
                    self.left[arc as usize ^ 1] += pushed;
                }
                return pushed;
            }
            if let Some(&arc) = self.at[at].get(next[at]) {
                let end = self.to[arc as usize] as usize;
                if self.left[arc as usize] > 0 && level[end] == level[at] + 1 {
                    path.push(arc);
                    at = end;
                } else {
                    next[at] += 1;
                }
            } else {
                // A dead end. The arc to this node is skipped in the rest of the phase.
                let Some(arc) = path.pop() else { return 0 };
                at = self.to[arc as usize ^ 1] as usize;
                next[at] += 1;
            }
        }
    }
}
