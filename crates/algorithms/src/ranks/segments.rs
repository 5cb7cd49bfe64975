//! Long messages in segments, so that a rank passes one on while the next arrives.

use unisono_base::Span;

use crate::{AlgorithmError, Case, Param, Params};

pub const PARAM: Param = Param { name: "segment", values: "bytes of a segment, from 1 (default: the whole vector)" };

/// Sizes worth ranking, in bytes.
const SIZES: [u64; 4] = [1 << 10, 8 << 10, 64 << 10, 512 << 10];

/// The segments of the whole vector. A segment holds at least one element.
///
/// # Errors
/// The parameter is no size.
pub fn segments(
    algorithm: &'static str,
    case: &Case,
    params: &Params,
) -> Result<impl Iterator<Item = Span> + Clone + use<>, AlgorithmError> {
    let (elements, bytes) = (case.collective.elements, case.collective.dtype.bytes() as u32);
    let asked = params.number(algorithm, PARAM.name, 1..=u32::MAX)?;
    let most = asked.map_or(elements, |segment| segment / bytes).max(1);
    let count = elements.div_ceil(most);
    Ok((0..count).map(move |n| Span::new(n * most, most.min(elements - n * most))))
}

/// How many segments there are; 1 where the parameter is wrong, which is said elsewhere.
pub fn count(algorithm: &'static str, case: &Case, params: &Params) -> u64 {
    segments(algorithm, case, params).map_or(1, |all| all.count() as u64)
}

/// The whole vector at once, and sizes that cut it.
pub fn candidates(case: &Case) -> Vec<Params> {
    let whole = case.bytes(case.collective.elements);
    let cuts = SIZES.into_iter().filter(|&size| size < whole);
    std::iter::once(Params::new()).chain(cuts.map(|size| Params::new().with(PARAM.name, size))).collect()
}
