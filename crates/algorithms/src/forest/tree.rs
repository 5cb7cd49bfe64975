//! One tree of a forest on a grid: its edges and the times of its elements.

use unisono_base::interrupt::poll;
use unisono_machine::Grid;

/// A tree over PEs: the parent of each PE; the root is its own parent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree(pub Vec<u32>);

/// The edge from a PE to its parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
}

impl Tree {
    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        (0..).zip(&self.0).map(|(from, &to)| Edge { from, to }).filter(|e| e.from != e.to)
    }

    pub fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.0.len()];
        self.edges().for_each(|e| children[e.to as usize].push(e.from));
        children
    }

    /// Returns all PEs in an order in which parents come before their children.
    fn downward(&self, children: &[Vec<u32>]) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).zip(&self.0).filter(|&(pe, &to)| pe == to).map(|(pe, _)| pe).collect();
        let mut at = 0;
        while at < order.len() {
            poll();
            order.extend_from_slice(&children[order[at] as usize]);
            at += 1;
        }
        order
    }

    /// Returns the children of each PE in the order in which their first elements would arrive without contention. In
    /// this order a PE adds the elements of the other children while it waits for the element of the last child.
    pub fn children_by_arrival(&self, grid: Grid, depth_cycles: u32) -> Vec<Vec<u32>> {
        let mut children = self.children();
        let mut ready = vec![0; self.0.len()];
        for pe in self.downward(&children).into_iter().rev() {
            poll();
            let own = &mut children[pe as usize];
            let arrival = |child: u32| ready[child as usize] + grid.distance(child, pe) + depth_cycles - 1;
            own.sort_by_key(|&child| (arrival(child), child));
            ready[pe as usize] = first_out(own.iter().map(|&child| arrival(child)), 1);
        }
        children
    }

    /// Returns three maxima over all paths to the root: the cycles until the root has the first element, the hops, and
    /// the messages. `children` are in the order of receipt, and each except the last takes `chunk` cycles. `hops(pe)`
    /// is the number of hops from a PE to its parent.
    pub fn latency(
        &self,
        children: &[Vec<u32>],
        depth_cycles: u32,
        hops: impl Fn(u32) -> u32,
        chunk: u32,
    ) -> (u32, u32, u32) {
        let mut at: Vec<(u32, u32, u32)> = vec![(0, 0, 0); self.0.len()];
        let mut last = (0, 0, 0);
        for pe in self.downward(children).into_iter().rev() {
            poll();
            let own = || children[pe as usize].iter().map(|&child| (at[child as usize], hops(child)));
            last = (
                first_out(own().map(|((ready, ..), hops)| ready + hops + depth_cycles - 1), chunk),
                own().map(|((_, far, _), hops)| far + hops).max().unwrap_or(0),
                own().map(|((.., deep), _)| deep + 1).max().unwrap_or(0),
            );
            at[pe as usize] = last;
        }
        last
    }
}

/// Returns the cycle in which a PE has sent its first element: after `chunk` cycles for each child except the last, and
/// one operation for the last, or for its own element if it has no children.
fn first_out(arrivals: impl ExactSizeIterator<Item = u32>, chunk: u32) -> u32 {
    let last = arrivals.len().saturating_sub(1);
    let taken = |n| if n == last { 1 } else { chunk };
    arrivals.enumerate().fold(0, |done: u32, (n, arrival)| done.max(arrival).saturating_add(taken(n))).max(1)
}
