//! The plan of a request with all options of a user.

use unisono_algorithms::Params;

use crate::{
    Bits, Format, Plan, PlanError, Problem, Request,
    candidates::Ranked,
    library_bits, library_choice,
    plan::{Named, planned},
};

/// The options of a user in addition to the collective and the machine. By default all are absent.
#[derive(Clone, Copy, Default, Debug)]
pub struct PlanOptions<'a> {
    /// The only algorithm to plan.
    pub algorithm: Option<&'a str>,
    /// True if parameters of `algorithm` that are not given have their default values instead of the best values.
    pub at_defaults: bool,
    /// The name of the format of the plan ([`Format::named`]).
    pub target: Option<&'a str>,
    /// The bytes of the MPI library's file (`libmpi.so`), or its table in JSON, for formats that need the table.
    pub file: Option<&'a [u8]>,
    /// The library whose own choice is reported beside the plan.
    pub behaves_as: Option<&'a str>,
    /// The property of the result's bits that the plan must have.
    pub bits: Option<&'a str>,
    /// The number of logical contributors, for the property `ranks-count` ([`Bits::RanksCount`]).
    pub contributors: Option<u32>,
}

/// Plans a request with the options of a user.
///
/// # Errors
/// Returns the errors of [`Problem::new`] and [`crate::plan_for`], and an error for an unknown format, library or
/// property.
pub fn plan_with(request: &Request<'_>, params: &Params, options: &PlanOptions<'_>) -> Result<Plan, PlanError> {
    let form = options.target.map(|name| Format::named(name, options.file)).transpose()?;
    let problem = Problem::new(request)?;
    // Unknown names are refused before candidates are timed, because timing may take long.
    let bits = options.bits.map(|name| Bits::new(name, options.contributors)).transpose()?;
    let mut library = options.behaves_as.map(|name| library_choice(name, &problem)).transpose()?;
    if let (Some(library), Some(bits)) = (&mut library, bits) {
        library.bits = Some(library_bits(library.name, &problem, bits)?);
    }
    let named = options.algorithm.map(|algorithm| Named { algorithm, at_defaults: options.at_defaults });
    let ranked = if bits.is_some() { Ranked::AllOrders } else { Ranked::All };
    let mut made = planned(problem, named, params, form, ranked)?;
    if let Some(bits) = bits {
        made = made.with_bits(bits)?;
    }
    if options.algorithm.is_some() {
        // Only this algorithm was timed, so the fastest of all candidates is not known.
        made.fastest = None;
    }
    made.library = library;
    Ok(made)
}
