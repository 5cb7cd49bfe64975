//! The division of long messages into segments, so that a rank forwards one segment while the next arrives.

use unisono_base::{Span, narrow};

use crate::{AlgorithmError, Case, Param, Params};

/// The name of the parameter that states the bytes of a segment.
pub const NAME: &str = "segment";

/// The parameter for algorithms that send the whole vector as one segment by default.
pub const WHOLE: Param = Param { name: NAME, values: "bytes of a segment, from 1 (default: the whole vector)" };

/// The sizes of segments that a plan considers besides the defaults, in bytes.
const SIZES: [u32; 4] = [1 << 10, 8 << 10, 64 << 10, 512 << 10];

/// Returns the segments of the vector, by default of `default` bytes or the whole vector. A segment holds at least one
/// element.
///
/// # Errors
/// Returns an error if the parameter is not a whole number of bytes from 1.
pub fn segments(
    algorithm: &'static str,
    default: Option<u32>,
    case: &Case,
    params: &Params,
) -> Result<impl Iterator<Item = Span> + Clone + use<>, AlgorithmError> {
    let (elements, bytes) = (case.collective.elements, narrow::<u32>(case.collective.element_bytes()));
    let asked = params.number(algorithm, NAME, 1..=u32::MAX)?.or(default);
    let most = asked.map_or(elements, |segment| segment / bytes).max(1);
    let count = elements.div_ceil(most);
    Ok((0..count).map(move |n| Span::new(n * most, most.min(elements - n * most))))
}

/// Returns the elements of the first segment, which is the longest, and the number of further segments.
///
/// # Errors
/// Returns the errors of [`segments`].
pub fn first_and_more(
    algorithm: &'static str,
    default: Option<u32>,
    case: &Case,
    params: &Params,
) -> Result<(u32, u32), AlgorithmError> {
    let mut all = segments(algorithm, default, case, params)?;
    let first = all.next().map_or(0, |segment| segment.len);
    Ok((first, narrow::<u32>(all.count())))
}

/// Returns the number of segments; 1 if the parameter is wrong, which another check reports.
pub fn count(algorithm: &'static str, default: Option<u32>, case: &Case, params: &Params) -> u64 {
    segments(algorithm, default, case, params).map_or(1, |all| all.count() as u64)
}

/// Returns as candidates the default, other sizes of `SIZES` that cut the vector, and the whole vector if the default
/// cuts it.
pub fn candidates(default: Option<u32>, case: &Case) -> Vec<Params> {
    let whole = case.bytes(case.collective.elements);
    let cuts = SIZES.into_iter().filter(|&size| u64::from(size) < whole && Some(size) != default);
    let uncut = u32::try_from(whole).ok().filter(|&whole| default.is_some_and(|default| default < whole));
    std::iter::once(Params::new()).chain(cuts.chain(uncut).map(|size| Params::new().with(NAME, size))).collect()
}
