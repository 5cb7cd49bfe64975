//! Shapes in HLO: `f32[2,3]{1,0}`, `token[]`, and tuples of shapes.

use super::text::{bracketed, parts};

const MOST_DEPTH: usize = 16;
/// The maximum number of bits of a plausible array.
const MOST_BITS: u64 = 1 << 56;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    Array { bits: u64, dims: Vec<u64> },
    Tuple(Vec<Shape>),
}

impl Shape {
    /// Reads the shape at the start of a text. Also returns the rest of the text.
    pub fn read(text: &str) -> Result<(Self, &str), String> {
        Self::read_at(text, 0)
    }

    fn read_at(text: &str, depth: usize) -> Result<(Self, &str), String> {
        let text = text.trim_start();
        let wrong = || format!("'{}' is not a shape", unisono_base::excerpt(text));
        if text.starts_with('(') {
            let (inside, rest) = bracketed(text).ok_or_else(wrong)?;
            if depth == MOST_DEPTH {
                return Err(format!("tuples are nested more than {MOST_DEPTH} deep"));
            }
            let elements = parts(inside).into_iter().map(|part| Ok(Self::read_at(part, depth + 1)?.0));
            return Ok((Self::Tuple(elements.collect::<Result<_, String>>()?), rest));
        }
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).ok_or_else(wrong)?;
        let (name, rest) = text.split_at(end);
        let (inside, mut rest) = bracketed(rest).filter(|_| rest.starts_with('[')).ok_or_else(wrong)?;
        let element_bits =
            bits(name).ok_or_else(|| format!("'{}' is not an element type", unisono_base::excerpt(name)))?;
        let dim = |part: &str| part.trim_start_matches("<=").parse::<u64>().ok();
        let dims: Vec<u64> = parts(inside).into_iter().map(dim).collect::<Option<_>>().ok_or_else(wrong)?;
        let total = dims.iter().try_fold(element_bits, |bits, &dim| bits.checked_mul(dim));
        let bits = total.filter(|&bits| bits <= MOST_BITS).ok_or_else(|| format!("{name}[{inside}] is too large"))?;
        if rest.starts_with('{') {
            rest = bracketed(rest).ok_or_else(wrong)?.1;
        }
        Ok((Self::Array { bits, dims }, rest))
    }

    pub fn bytes(&self) -> u64 {
        match self {
            Self::Array { bits, .. } => bits.div_ceil(8),
            Self::Tuple(elements) => elements.iter().fold(0, |sum, shape| sum.saturating_add(shape.bytes())),
        }
    }

    /// Returns the extents of an array; empty for a tuple.
    pub fn dims(&self) -> &[u64] {
        match self {
            Self::Array { dims, .. } => dims,
            Self::Tuple(_) => &[],
        }
    }

    /// Returns the number of elements of an array, or of all arrays in a tuple.
    #[expect(clippy::cast_precision_loss, reason = "counts of operations are floating point")]
    pub fn elements(&self) -> f64 {
        match self {
            Self::Array { dims, .. } => dims.iter().map(|&dim| dim as f64).product(),
            Self::Tuple(elements) => elements.iter().map(Self::elements).sum(),
        }
    }

    /// Returns the bytes of an element, rounded up and at least 1; for a tuple, of its first array.
    pub fn element_bytes(&self) -> u32 {
        match self {
            Self::Array { bits, dims } => {
                let elements = dims.iter().fold(1_u64, |all, &dim| all.saturating_mul(dim));
                unisono_base::narrow(bits.checked_div(elements).unwrap_or(8).div_ceil(8).max(1))
            }
            Self::Tuple(elements) => elements.first().map_or(1, Self::element_bytes),
        }
    }
}

/// Returns the bits of an element type: the number in its name, such as 8 in `f8e4m3fn`, but 8 for `pred` and 0 for
/// `token` and `opaque`. `None` for other names.
fn bits(name: &str) -> Option<u64> {
    match name {
        "pred" => return Some(8),
        "token" | "opaque" => return Some(0),
        _ => {}
    }
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let prefix = &name[..name.len() - digits.len()];
    let bits: u64 = digits[..end].parse().ok()?;
    let is_type = matches!(prefix, "f" | "bf" | "s" | "u" | "c") && (1..=128).contains(&bits);
    is_type.then_some(bits)
}
