//! The division of long messages into segments, so that a rank forwards one segment while it receives the next. Other
//! algorithms have a parameter for the number of pieces instead.

use unisono_base::{Span, narrow};

use crate::{AlgorithmError, Case, Param, Params};

/// The name of the parameter that states the bytes of a segment.
pub const NAME: &str = "segment";

/// The parameter for algorithms that send the whole vector as one segment by default.
pub const WHOLE: Param = Param { name: NAME, values: "bytes of a segment, from 1 (default: the whole vector)" };

/// The sizes of segments that a plan considers besides the defaults, in bytes.
const SIZES: [u32; 4] = [1 << 10, 8 << 10, 64 << 10, 512 << 10];

/// Returns the number of elements of each segment except the last, at least one, and the number of segments. By default
/// a segment has `default` bytes; if `default` is `None`, it is the whole vector.
///
/// # Errors
/// Returns an error if the parameter is not a whole number of bytes from 1.
fn division(
    algorithm: &'static str,
    default: Option<u32>,
    case: &Case,
    params: &Params,
) -> Result<(u32, u32), AlgorithmError> {
    let (elements, bytes) = (case.collective.elements, narrow::<u32>(case.collective.element_bytes()));
    let asked = params.number(algorithm, NAME, 1..=u32::MAX)?.or(default);
    let most = asked.map_or(elements, |segment| segment / bytes).max(1);
    Ok((most, elements.div_ceil(most)))
}

/// Returns the segments of the vector. By default a segment has `default` bytes; if `default` is `None`, it is the
/// whole vector. A segment holds at least one element.
///
/// # Errors
/// Returns an error if the parameter is not a whole number of bytes from 1.
pub fn segments(
    algorithm: &'static str,
    default: Option<u32>,
    case: &Case,
    params: &Params,
) -> Result<impl Iterator<Item = Span> + Clone + use<>, AlgorithmError> {
    let (most, count) = division(algorithm, default, case, params)?;
    let elements = case.collective.elements;
    Ok((0..count).map(move |n| Span::new(n * most, most.min(elements - n * most))))
}

/// Returns the number of elements of the first segment, which is the longest, and the number of further segments.
///
/// # Errors
/// Returns the errors of [`segments`].
pub fn first_and_more(
    algorithm: &'static str,
    default: Option<u32>,
    case: &Case,
    params: &Params,
) -> Result<(u32, u32), AlgorithmError> {
    let (most, count) = division(algorithm, default, case, params)?;
    Ok((most.min(case.collective.elements), count.saturating_sub(1)))
}

/// Returns the number of segments. If the parameter is wrong, returns 1, because another check reports the error.
pub fn count(algorithm: &'static str, default: Option<u32>, case: &Case, params: &Params) -> u64 {
    division(algorithm, default, case, params).map_or(1, |(_, count)| count.into())
}

/// Returns as candidates the default, each size of `SIZES` that cuts the vector, and the whole vector if the default
/// cuts the vector.
pub fn candidates(default: Option<u32>, case: &Case) -> Vec<Params> {
    let whole = case.bytes(case.collective.elements);
    let cuts = SIZES.into_iter().filter(|&size| u64::from(size) < whole && Some(size) != default);
    let uncut = u32::try_from(whole).ok().filter(|&whole| default.is_some_and(|default| default < whole));
    std::iter::once(Params::new()).chain(cuts.chain(uncut).map(|size| Params::new().with(NAME, size))).collect()
}

/// Returns the parameters for shorter and for longer segments: the next power of two below the present length, and the
/// next above it, at most the whole vector. `None` if there is no such length.
pub fn recut(algorithm: &'static str, default: Option<u32>, case: &Case, params: &Params) -> [Option<Params>; 2] {
    let whole = u32::try_from(case.bytes(case.collective.elements)).unwrap_or(u32::MAX);
    let Ok(asked) = params.number(algorithm, NAME, 1..=u32::MAX) else { return [None, None] };
    let default = default.unwrap_or(whole);
    let now = asked.unwrap_or(default).min(whole);
    [below(now).filter(|&size| u64::from(size) >= case.collective.element_bytes()), above(now, whole)].map(|size| {
        let others = params.only(|name| name != NAME);
        size.map(|size| if size == default { others } else { others.with(NAME, size) })
    })
}

/// Returns the parameters for more and for fewer pieces than `now`: the next power of two above it, at most `most`, and
/// the next below it. `None` if there is no such number.
pub fn recut_number(name: &str, now: u32, most: u32, params: &Params) -> [Option<Params>; 2] {
    [above(now, most), below(now)].map(|number| number.map(|number| params.clone().with(name, number)))
}

/// Returns the greatest power of two below a number.
fn below(now: u32) -> Option<u32> {
    now.checked_sub(1)?.checked_ilog2().map(|log| 1 << log)
}

/// Returns the least power of two above a number, or `most` if that is less; `None` if the number is at least `most`.
fn above(now: u32, most: u32) -> Option<u32> {
    (now < most).then(|| now.saturating_add(1).checked_next_power_of_two().unwrap_or(most).min(most))
}
