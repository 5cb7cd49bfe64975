//! The order in which a rank adds the inputs of all ranks, if it receives all of them.

use unisono_schedule::verify::Expression;

/// The sums of the inputs of all ranks. All roots add in the same order.
pub struct Sums {
    /// The two operands of each sum. An operand below `ranks` is the input of that rank; larger operands are `ranks`
    /// plus the index of an earlier sum.
    pub operands: Vec<(u32, u32)>,
    /// For each operand, the sum that adds it; `None` for the last sum.
    pub sum_of: Vec<Option<u32>>,
    /// For each sum, its offset in scratch memory in chunks. `None` for sums that include the input of rank 0: they are
    /// in the output, one after the other.
    pub slots: Vec<Option<u32>>,
    /// The number of chunks of scratch memory.
    pub used: u32,
}

impl Sums {
    fn new(operands: Vec<(u32, u32)>, ranks: u32) -> Self {
        let mut sum_of = vec![None; ranks as usize + operands.len()];
        let (mut slots, mut used): (Vec<Option<u32>>, u32) = (Vec::new(), 0);
        for (&(left, right), sum) in operands.iter().zip(0..) {
            (sum_of[left as usize], sum_of[right as usize]) = (Some(sum), Some(sum));
            let has_first = left == 0 || left >= ranks && slots[(left - ranks) as usize].is_none();
            slots.push(if has_first { None } else { Some(used) });
            used += u32::from(!has_first);
        }
        Self { operands, sum_of, slots, used }
    }

    /// Returns the sums that add the inputs from the first rank to the last.
    pub fn in_ranks(ranks: u32) -> Self {
        let from_left = (1..ranks).map(|rank| (if rank == 1 { 0 } else { ranks + rank - 2 }, rank));
        Self::new(from_left.collect(), ranks)
    }

    /// Returns the sums of the binary tree of `ranks` contributors by which the bits `ranks-count` are defined.
    pub fn in_tree(ranks: u32) -> Self {
        Self::new(Expression::combinations_of(ranks), ranks)
    }
}
