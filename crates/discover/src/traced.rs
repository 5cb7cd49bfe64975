//! Dependences of a user's mapper on the chunk, from calls of its function with symbols in place of numbers.
//!
//! A function that adds, subtracts and scales its arguments returns linear forms, from which the dependence of each
//! dimension follows without a chunk. A function that compares, divides or indexes by an argument refuses symbols; then
//! its dependences are unknown. Source: "Automatic Discovery of Collective Communication Patterns" (Knorr and others,
//! 2024), section 3.2, whose implementation finds constant and non-overlapping mappers and transpositions by
//! meta-programming on the mappers.

use crate::mapper::DimRule;

/// A linear form: the factors of the chunk's lower and upper corner and of the buffer's shape, and a constant.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinearForm {
    low: [i64; 3],
    high: [i64; 3],
    shape: [i64; 3],
    constant: i64,
}

/// The dependence of one dimension of a mapper's box on the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dependence {
    Constant,
    /// The chunk's interval in this dimension of the range.
    Identity(usize),
    /// Another interval, which is disjoint for chunks that are disjoint in this dimension of the range.
    Apart(usize),
    /// An interval that may overlap with those of other chunks; it depends on these dimensions of the range.
    Other([bool; 3]),
}

/// The dependences of all boxes of a mapper.
pub type Dependences = Vec<[Dependence; 3]>;

/// A box in symbols: the forms of its two corners, one for each dimension of the buffer.
pub type SymbolicBox = (Vec<LinearForm>, Vec<LinearForm>);

/// The dependences of a mapper's boxes, indexed by the dimensions of the range and of the buffer, each minus one;
/// `None` if they are unknown.
#[derive(Clone, Default, Debug)]
pub struct Traced([[Option<Dependences>; 3]; 3]);

impl Traced {
    /// Calls `mapper` with the symbols of the chunk's corners and of the shape, for all numbers of dimensions. `mapper`
    /// returns `None` if the function refuses symbols.
    pub fn of<E>(
        mut mapper: impl FnMut(&[LinearForm], &[LinearForm], &[LinearForm]) -> Result<Option<Vec<SymbolicBox>>, E>,
    ) -> Result<Self, E> {
        let mut traced = Self::default();
        for range in 1..=3 {
            for dims in 1..=3 {
                let symbols = |part: fn(&mut LinearForm) -> &mut [i64; 3], count: usize| -> Vec<LinearForm> {
                    let symbol = |d: usize| {
                        let mut form = LinearForm::default();
                        part(&mut form)[d] = 1;
                        form
                    };
                    (0..count).map(symbol).collect()
                };
                let (low, high) = (symbols(|f| &mut f.low, range), symbols(|f| &mut f.high, range));
                let boxes = mapper(&low, &high, &symbols(|f| &mut f.shape, dims))?;
                traced.0[range - 1][dims - 1] = boxes.and_then(|boxes| boxes.iter().map(|b| of_box(b, dims)).collect());
            }
        }
        Ok(traced)
    }

    pub fn at(&self, range: usize, dims: usize) -> Option<&Dependences> {
        self.0.get(range.checked_sub(1)?)?.get(dims.checked_sub(1)?)?.as_ref()
    }
}

/// Returns the dependences of a box whose corners have a form for each dimension of the buffer; `None` if they have
/// other numbers of forms.
fn of_box((low, high): &SymbolicBox, dims: usize) -> Option<[Dependence; 3]> {
    let each = |d: usize| if d < dims { Dependence::between(&low[d], &high[d]) } else { Dependence::Constant };
    (low.len() == dims && high.len() == dims).then(|| std::array::from_fn(each))
}

impl From<i64> for LinearForm {
    fn from(constant: i64) -> Self {
        Self { constant, ..Self::default() }
    }
}

impl LinearForm {
    /// Returns the sum of this form and `factor` times `other`, or `None` if a number overflows.
    pub fn plus(&self, factor: i64, other: &Self) -> Option<Self> {
        let sum = |a: i64, b: i64| a.checked_add(b.checked_mul(factor)?);
        let sums = |a: &[i64; 3], b: &[i64; 3]| Some([sum(a[0], b[0])?, sum(a[1], b[1])?, sum(a[2], b[2])?]);
        Some(Self {
            low: sums(&self.low, &other.low)?,
            high: sums(&self.high, &other.high)?,
            shape: sums(&self.shape, &other.shape)?,
            constant: sum(self.constant, other.constant)?,
        })
    }

    /// Returns the dimension and the factor of a form that depends on a single coordinate of `corner`, and not on
    /// `others`; `None` for other forms.
    fn follows(corner: &[i64; 3], others: &[i64; 3]) -> Option<(usize, i64)> {
        let mut factors = (0..3).filter(|&d| corner[d] != 0);
        match (factors.next(), factors.next()) {
            (Some(d), None) if *others == [0; 3] => Some((d, corner[d])),
            _ => None,
        }
    }
}

impl Dependence {
    /// Returns the dependence of the interval `[low, high)`.
    fn between(low: &LinearForm, high: &LinearForm) -> Self {
        let dims: [bool; 3] =
            std::array::from_fn(|d| [low.low[d], low.high[d], high.low[d], high.high[d]].iter().any(|&f| f != 0));
        if dims == [false; 3] {
            return Self::Constant;
        }
        let upward = (LinearForm::follows(&low.low, &low.high), LinearForm::follows(&high.high, &high.low));
        let downward = (LinearForm::follows(&low.high, &low.low), LinearForm::follows(&high.low, &high.high));
        // Intervals between the scaled ends of consecutive chunks are disjoint unless the intervals are extended.
        let extended = low.shape != high.shape || high.constant > low.constant;
        let moved = low.shape != [0; 3] || (low.constant, high.constant) != (0, 0);
        match (upward, downward) {
            ((Some((d, 1)), Some(end)), _) if end == (d, 1) && !extended && !moved => Self::Identity(d),
            ((Some((d, k)), Some(end)), _) if end == (d, k) && k > 0 && !extended => Self::Apart(d),
            (_, (Some((d, k)), Some(end))) if end == (d, k) && k < 0 && !extended => Self::Apart(d),
            _ => Self::Other(dims),
        }
    }
}

impl From<DimRule> for Dependence {
    fn from(rule: DimRule) -> Self {
        match rule {
            DimRule::Const { .. } => Self::Constant,
            DimRule::Follow { dim, low: 0, high: 0 } => Self::Identity(dim),
            DimRule::Follow { dim, low, high } if high <= low => Self::Apart(dim),
            DimRule::Follow { dim, .. } => Self::Other(std::array::from_fn(|d| d == dim)),
        }
    }
}
