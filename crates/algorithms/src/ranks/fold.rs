//! Maps any number of ranks to a power of two. For P = 2^m + r, the first 2r ranks fold in pairs to r ranks.
//!
//! The ranks of a pair are consecutive, so virtual ranks represent intervals of ranks in ascending order. Source:
//! Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005, and MPICH.

use unisono_base::NodeId;
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use super::Blocks;
use crate::Case;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fold {
    /// 2^m, the number of virtual ranks.
    pub whole: u32,
    /// r, the number of pairs.
    pub pairs: u32,
    /// A rank that must stay in its pair. In all other pairs the odd rank stays.
    stays: Option<u32>,
}

impl Fold {
    pub fn new(ranks: u32) -> Self {
        let whole = 1 << ranks.ilog2();
        Self { whole, pairs: ranks - whole, stays: None }
    }

    pub fn with_root(ranks: u32, root: u32) -> Self {
        Self { stays: Some(root), ..Self::new(ranks) }
    }

    /// Returns m, the number of stages of the virtual ranks.
    pub fn stages(&self) -> u32 {
        self.whole.ilog2()
    }

    /// Returns the real rank of virtual rank `v`.
    pub fn real(&self, v: u32) -> NodeId {
        NodeId(if v >= self.pairs {
            v + self.pairs
        } else if self.stays == Some(2 * v) {
            2 * v
        } else {
            2 * v + 1
        })
    }

    /// Returns the ranks of pair `v`: the rank that stays, which is virtual rank `v`, and the rank that leaves.
    pub fn pair(&self, v: u32) -> (NodeId, NodeId) {
        let stays = self.real(v);
        (stays, NodeId(4 * v + 1 - stays.0))
    }

    /// Emits the fold: in each pair, the rank that stays stores the sum of both vectors of `elements` elements in the
    /// operand that `sum` returns for its virtual rank. Operands keep their order.
    pub fn up(&self, b: &mut Builder, elements: u32, sum: impl Fn(u32) -> Operand) {
        for v in 0..self.pairs {
            let (stays, goes) = self.pair(v);
            let (up, own) = (Operand::Stream(b.stream(goes, &[stays])), Operand::In(0));
            b.combine(goes, 0, elements, &[own], &[up]);
            b.combine(stays, 0, elements, &if goes < stays { [up, own] } else { [own, up] }, &[sum(v)]);
        }
    }

    /// Returns the first rank of the interval that virtual rank `v` represents.
    pub fn first(&self, v: u32) -> u32 {
        v + v.min(self.pairs)
    }

    /// Returns the rounds: `up` if pairs fold, then the rounds of the virtual ranks, then `down` if pairs fold.
    pub fn rounds(
        &self,
        up: Round,
        whole: impl IntoIterator<Item = Round>,
        down: impl IntoIterator<Item = Round>,
    ) -> Vec<Round> {
        let folds = self.pairs > 0;
        let mut rounds: Vec<Round> = folds.then_some(up).into_iter().chain(whole).collect();
        if folds {
            rounds.extend(down);
        }
        rounds
    }

    /// Returns the round in which pairs fold whole vectors, and the rounds in which virtual ranks halve their vectors
    /// down to one block each.
    pub fn halving(&self, case: &Case) -> (Round, Vec<Round>) {
        let (blocks, whole) = (Blocks::new(case.collective.elements, self.whole), case.bytes(case.collective.elements));
        let sum = |bytes: u64| Round::new(1, bytes).reducing(bytes);
        let half = |k: u32| sum(case.bytes(blocks.span(0, self.whole >> k).len));
        (sum(whole), (1..=self.stages()).map(half).collect())
    }

    /// Returns the real ranks of all virtual ranks.
    pub fn nodes(&self) -> Vec<NodeId> {
        (0..self.whole).map(|v| self.real(v)).collect()
    }
}
