//! A reduce that is a tree on a line, as a registered algorithm.

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{Estimate, Phase, Placed, Sharper};
use unisono_schedule::Builder;

use super::{Keep, Side, Sides, copy_to_output, own_input, reduce};
use crate::{Algorithm, AlgorithmError, Case, Info, Params, Profile};

/// A family of trees over the PEs on one side of a root, one tree for each number of PEs.
pub trait LineTree: Sync {
    /// Returns the tree over `pes` PEs with the root as PE 0, for a vector of `wavelets` wavelets; each message on the
    /// longest chain of messages costs `depth_cycles` cycles.
    ///
    /// # Errors
    /// Returns an error if a parameter is not accepted.
    fn side(&self, pes: u32, wavelets: u64, depth_cycles: f64, params: &Params) -> Result<Side, AlgorithmError>;

    /// Returns both sides of a root with `left` and `right` PEs on its sides.
    ///
    /// # Errors
    /// Returns an error if a parameter is not accepted.
    fn sides(
        &self,
        left: u32,
        right: u32,
        wavelets: u64,
        depth_cycles: f64,
        params: &Params,
    ) -> Result<Sides, AlgorithmError> {
        Ok(Sides {
            left: self.side(left + 1, wavelets, depth_cycles, params)?,
            right: self.side(right + 1, wavelets, depth_cycles, params)?,
        })
    }

    /// Returns a proved time that is more precise than the time by the model; `None` if there is none.
    fn sharper(&self, _sides: &Sides, _wavelets: u64) -> Option<Sharper> {
        None
    }

    /// Returns a text for reports about properties of the tree that the parameters do not state; `None` without such
    /// properties.
    fn note(&self, _sides: &Sides) -> Option<String> {
        None
    }
}

/// Returns the sides for the root at position `root` of a line of `pes` PEs, for the vector of `case`.
pub fn line_case(
    tree: &dyn LineTree,
    case: &Case,
    pes: u32,
    root: u32,
    params: &Params,
) -> Result<Sides, AlgorithmError> {
    tree.sides(root, pes - 1 - root, case.wavelets(), case.depth_cycles(), params)
}

/// Returns the phase of a reduce over `sides`, for the vector of `case`.
pub fn reduce_estimate(name: &str, tree: &dyn LineTree, sides: &Sides, case: &Case) -> Phase {
    let wavelets = case.wavelets();
    let (sharper, note) = (tree.sharper(sides, wavelets), tree.note(sides));
    let in_turn = sides.in_turn(wavelets, case.depth_cycles());
    Phase { sharper, note, in_turn, ..Phase::new(name, sides.terms(wavelets)) }
}

/// Builds the schedule and the placement of a reduce along a line of PEs.
///
/// # Errors
/// Returns an error if the tables cannot hold the schedule.
pub fn reduce_along(line: &[NodeId], sides: &Sides, case: &Case) -> Result<Placed, AlgorithmError> {
    let mut b = Builder::new(case.collective);
    b.reserve(line.len() + 1, line.len());
    b.phase("reduce");
    let mut keep = Keep::default();
    let at = reduce(&mut b, line, sides, &own_input, &mut keep, 0);
    copy_to_output(&mut b, NodeId(case.collective.root), at);
    let schedule = b.finish()?;
    let placement = keep.placement(case.grid(), &schedule);
    Ok(Placed::on_grid(schedule, placement))
}

/// The reduce along a [`LineTree`], as an [`Algorithm`].
pub struct Line<T>(pub T, pub &'static Info);

impl<T: LineTree> Algorithm for Line<T> {
    fn info(&self) -> &'static Info {
        self.1
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.kind != Kind::Reduce || !case.grid().is_line() {
            return Err(AlgorithmError::Unsupported {
                algorithm: self.info().name,
                reason: format!("it reduces along one row or column, not {} on {}", case.collective.kind, case.grid()),
            });
        }
        line_case(&self.0, case, case.collective.ranks, case.collective.root, params).map(|_| ())
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let c = case.collective;
        let sides = line_case(&self.0, case, c.ranks, c.root, params)?;
        let line: Vec<NodeId> = (0..c.ranks).map(NodeId).collect();
        reduce_along(&line, &sides, case)
    }

    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        let c = case.collective;
        let sides = line_case(&self.0, case, c.ranks, c.root, params).ok()?;
        Some(Profile::Terms(Estimate { phases: vec![reduce_estimate("reduce", &self.0, &sides, case)] }))
    }

    fn line_tree(&self) -> Option<&dyn LineTree> {
        Some(&self.0)
    }
}
