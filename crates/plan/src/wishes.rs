//! The plan of a request with all that a user may wish for it.

use unisono_algorithms::Params;

use crate::{
    Bits, Format, Plan, PlanError, Problem, Request, library_bits, library_choice,
    candidates::Ranked,
    plan::{Named, planned},
};

/// The wishes of a user beyond the collective and the machine. By default there are none.
#[derive(Clone, Copy, Default, Debug)]
pub struct Wishes<'a> {
    /// The one algorithm to plan.
    pub algorithm: Option<&'a str>,
    /// Parameters of that algorithm that are not given are its own defaults, and not the best ones.
    pub at_defaults: bool,
    /// The format of code or the tuning file for which the plan is made, and the library's file that it starts from.
    pub target: Option<&'a str>,
    pub file: Option<&'a [u8]>,
    /// The library whose own choice is reported beside the plan.
    pub behaves_as: Option<&'a str>,
    /// The property of the result's bits that the plan must have, with a number of logical contributors.
    pub bits: Option<&'a str>,
    pub contributors: Option<u32>,
}

/// Plans a request.
///
/// # Errors
/// Those of [`Problem::new`] and [`crate::plan`]; unknown names of a format, a library or a property of bits.
pub fn plan_as(request: &Request<'_>, params: &Params, wishes: &Wishes<'_>) -> Result<Plan, PlanError> {
    let form = wishes.target.map(|name| Format::named(name, wishes.file)).transpose()?;
    let problem = Problem::new(request)?;
    // Unknown names are refused before the candidates are timed, which may take long.
    let bits = wishes.bits.map(|name| Bits::new(name, wishes.contributors)).transpose()?;
    let mut library = wishes.behaves_as.map(|name| library_choice(name, &problem)).transpose()?;
    if let (Some(library), Some(bits)) = (&mut library, bits) {
        library.bits = Some(library_bits(library.name, &problem, bits)?);
    }
    let named = wishes.algorithm.map(|algorithm| Named { algorithm, at_defaults: wishes.at_defaults });
    let mut made = planned(problem, named, params, form, Ranked::All)?;
    if let Some(bits) = bits {
        made = made.with_bits(bits)?;
    }
    if wishes.algorithm.is_some() {
        // The fastest candidate is unknown.
        made.fastest = None;
    }
    made.library = library;
    Ok(made)
}
