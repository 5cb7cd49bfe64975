//! A reduce over several trees of a grid, as a registered algorithm.

use unisono_lower::Placed;

use super::{Tree, build, chunk, estimate, estimate_steps, supports};
use crate::{Algorithm, AlgorithmError, Case, Info, Params, Profile, Size};

/// An algorithm that reduces over several trees of a grid, each for a part of the vector.
pub trait GridTrees: Sync {
    /// Returns the facts of the algorithm, with [`super::CHUNK`] among its parameters.
    const INFO: Info;

    /// Returns true if the root must be in a corner.
    fn needs_corner(&self) -> bool {
        true
    }

    /// Returns the number of trees.
    ///
    /// # Errors
    /// Returns an error if a parameter is not accepted.
    fn count(&self, case: &Case, params: &Params) -> Result<u32, AlgorithmError>;

    /// Returns the trees for a case that is supported.
    ///
    /// # Errors
    /// Returns an error if a parameter is not accepted.
    fn trees(&self, case: &Case, params: &Params) -> Result<Vec<Tree>, AlgorithmError>;

    /// Returns the number of elementary steps of [`Self::trees`]; 0 if the estimate takes more steps.
    fn growth_steps(&self, _case: &Case, _params: &Params) -> u128 {
        0
    }

    /// Returns the settings of the parameters that a plan compares on a grid with several rows and columns.
    fn candidates(&self, _case: &Case) -> Vec<Params> {
        vec![Params::new()]
    }
}

/// A wrapper that makes [`GridTrees`] an [`Algorithm`].
pub struct Over<T>(pub T);

impl<T: GridTrees> Algorithm for Over<T> {
    fn info(&self) -> &'static Info {
        &T::INFO
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        self.0.count(case, params)?;
        chunk(T::INFO.name, params)?;
        supports(T::INFO.name, case, self.0.needs_corner())
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        build(case, &self.0.trees(case, params)?, chunk(T::INFO.name, params)?)
    }

    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        Some(Profile::Terms(estimate(case, &self.0.trees(case, params).ok()?, chunk(T::INFO.name, params).ok()?)))
    }

    fn size(&self, case: &Case, params: &Params) -> Size {
        let steps = |trees| estimate_steps(case, trees) + self.0.growth_steps(case, params);
        Size { profile_steps: self.0.count(case, params).map_or(0, steps), ..Size::default() }
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.grid().is_line() { Vec::new() } else { self.0.candidates(case) }
    }
}
