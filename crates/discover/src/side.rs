//! The regions of a buffer that each rank touches, for all ranks at once.
//!
//! A side is a function from rank to region. Most are *affine*: ranks form a grid of one or two axes, and per dimension
//! of the buffer a term is either constant or follows one axis. The ranks that touch a box are then found by
//! arithmetic. Equal sides have equal forms: an axis that no dimension follows only counts ranks, and a dimension of
//! the range that the split does not divide is a constant.

use rustc_hash::FxHashMap;
use unisono_base::narrow;

use crate::{
    mapper::{DimRule, Mapper},
    space::{Box3, Region},
    split::{Axis, Geometry},
};

/// The index of a side in `Sides`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SideId(pub u32);

/// The interval of a term in one dimension of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    Const {
        low: i64,
        high: i64,
    },
    /// The interval `[part start + low, part end + high)` of axis `axis`, clamped to the buffer.
    Follow {
        axis: usize,
        low: i64,
        high: i64,
    },
}

/// A box with one rule for each dimension of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Term {
    pub rules: [Rule; 3],
}

impl Term {
    pub fn is_const(&self) -> bool {
        self.rules.iter().all(|r| matches!(r, Rule::Const { .. }))
    }

    /// Returns the dimensions of the buffer that follow an axis, each with the axis, low and high.
    pub fn follows(&self) -> impl Iterator<Item = (usize, usize, i64, i64)> {
        self.rules.iter().enumerate().filter_map(|(d, rule)| match *rule {
            Rule::Follow { axis, low, high } => Some((d, axis, low, high)),
            Rule::Const { .. } => None,
        })
    }
}

/// The regions of ranks in a row-major grid. Each rank touches the union of the terms.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Affine {
    pub axes: [Axis; 2],
    pub terms: Vec<Term>,
}

impl Affine {
    fn term_at(&self, term: &Term, parts: [u32; 2], buffer: &Box3) -> Box3 {
        let (mut min, mut max) = (buffer.min, buffer.max);
        for (d, rule) in term.rules.iter().enumerate() {
            let (low, high) = match *rule {
                Rule::Const { low, high } => (low, high),
                Rule::Follow { axis, low, high } => {
                    let (start, end) = self.axes[axis].part(parts[axis]);
                    (start + low, end + high)
                }
            };
            min[d] = min[d].max(low);
            max[d] = max[d].min(high);
        }
        Box3::new(min, max)
    }

    /// Returns for each axis the interval of parts that touch `window` by this term; `None` if no part does.
    fn parts_touching(&self, term: &Term, window: &Box3) -> Option<[(u32, u32); 2]> {
        let mut parts = [(0, self.axes[0].parts), (0, self.axes[1].parts)];
        for (d, rule) in term.rules.iter().enumerate() {
            match *rule {
                Rule::Const { low, high } => {
                    if window.min[d].max(low) >= window.max[d].min(high) {
                        return None;
                    }
                }
                Rule::Follow { axis, low, high } => {
                    // The part is moved and widened by the rule. The result overlaps [min, max) if the part itself
                    // overlaps [min - high, max - low).
                    let (from, to) = self.axes[axis].parts_of(window.min[d] - high, window.max[d] - low);
                    parts[axis] = (parts[axis].0.max(from), parts[axis].1.min(to));
                    if parts[axis].0 >= parts[axis].1 {
                        return None;
                    }
                }
            }
        }
        Some(parts)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    Affine(Affine),
    /// The regions of ranks, sorted by rank; other ranks touch nothing.
    Table(Vec<(u32, Region)>),
}

/// The region of a buffer that each of the ranks touches.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Side {
    pub buffer: Box3,
    pub form: Form,
}

/// Half-open intervals of ranks: sorted, disjoint, not adjacent.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ranks(Vec<(u32, u32)>);

impl Ranks {
    pub fn of(mut intervals: Vec<(u32, u32)>) -> Self {
        intervals.retain(|(a, b)| a < b);
        intervals.sort_unstable();
        let mut out: Vec<(u32, u32)> = Vec::with_capacity(intervals.len());
        for (a, b) in intervals {
            match out.last_mut() {
                Some(last) if a <= last.1 => last.1 = last.1.max(b),
                _ => out.push((a, b)),
            }
        }
        Self(out)
    }

    pub fn below(n: u32) -> Self {
        Self::of(vec![(0, n)])
    }

    pub fn one(rank: u32) -> Self {
        Self(vec![(rank, rank + 1)])
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|(a, b)| b - a).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn intervals(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|&(a, b)| a..b)
    }

    pub fn has(&self, rank: u32) -> bool {
        self.0.iter().any(|&(a, b)| (a..b).contains(&rank))
    }

    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|i| i.0)
    }

    pub fn union(&self, other: &Ranks) -> Ranks {
        Self::of(self.0.iter().chain(&other.0).copied().collect())
    }

    pub fn within(&self, other: &Ranks) -> bool {
        self.0.iter().all(|&(a, b)| other.0.iter().any(|&(c, d)| c <= a && b <= d))
    }
}

impl Side {
    /// Returns a side in which ranks `0..n` all touch the same box.
    pub fn prefix(n: u32, buffer: Box3, touched: Box3) -> Self {
        let rules = std::array::from_fn(|d| Rule::Const { low: touched.min[d], high: touched.max[d] });
        let axes = [Axis::count(n), Axis::count(1)];
        Self { buffer, form: Form::Affine(Affine { axes, terms: vec![Term { rules }] }) }
    }

    /// Returns a side of the ranks in `rows`, which must ascend, without those that touch nothing.
    pub fn table(buffer: Box3, mut rows: Vec<(u32, Region)>) -> Self {
        rows.retain(|(_, region)| !region.is_empty());
        if let [(0, region)] = &rows[..]
            && let [one] = region.boxes()
        {
            return Self::prefix(1, buffer, *one);
        }
        Self { buffer, form: Form::Table(rows) }
    }

    /// Returns the side of mappers for a geometry that is split among `nodes` ranks. If the error concerns a single
    /// rank, the error names this rank.
    pub fn of_mappers(
        geometry: &Geometry,
        nodes: u32,
        mappers: &[(Mapper, Option<[DimRule; 3]>)],
        buffer: Box3,
        dims: usize,
    ) -> Result<Self, (Option<u32>, String)> {
        let layout = geometry.layout(nodes);
        if mappers.iter().all(|(_, rules)| rules.is_some()) {
            let mut axes = layout.axes;
            let mut terms: Vec<Term> = mappers
                .iter()
                .filter_map(|(_, rules)| rules.as_ref())
                .map(|rules| Term { rules: std::array::from_fn(|d| cut(&rules[d], d, geometry, &axes, &buffer)) })
                .filter(|term| !term.rules.iter().any(|r| matches!(r, Rule::Const { low, high } if low >= high)))
                .collect();
            terms.sort_unstable();
            terms.dedup();
            for (k, axis) in axes.iter_mut().enumerate() {
                if !terms.iter().any(|t| t.follows().any(|(_, axis, _, _)| axis == k)) {
                    *axis = Axis::count(axis.parts);
                }
            }
            // If all terms are constant, both axes only count ranks, so they become one.
            if terms.iter().all(Term::is_const) {
                axes = [Axis::count(layout.chunks()), Axis::count(1)];
                let constants = Affine { axes, terms: terms.clone() };
                if let [one] = Region::of(terms.iter().map(|t| constants.term_at(t, [0, 0], &buffer))).boxes() {
                    return Ok(Self::prefix(layout.chunks(), buffer, *one));
                }
            }
            return Ok(Self { buffer, form: Form::Affine(Affine { axes, terms }) });
        }
        let whole = Self::image(geometry, mappers, buffer, dims).map_err(|why| (None, why))?;
        let mut rows = Vec::new();
        for rank in 0..layout.chunks() {
            let Some(chunk) = layout.chunk(rank) else { break };
            let one = Geometry { offset: chunk.min, size: size_of(&chunk), ..*geometry };
            let mut touched = Region::empty();
            for (mapper, rules) in mappers {
                let part = match rules {
                    Some(_) => Self::image(&one, &[(mapper.clone(), *rules)], buffer, dims),
                    None => mapper.evaluate(geometry, &chunk, &buffer, dims),
                };
                touched = touched.union(&part.map_err(|why| (Some(rank), why))?);
            }
            if !whole.contains(&touched) {
                return Err((
                    Some(rank),
                    format!(
                        "its mapper is not monotone: chunk {} touches {}, the whole range only {}",
                        chunk.text(geometry.dims),
                        touched.text(dims),
                        whole.text(dims)
                    ),
                ));
            }
            rows.push((rank, touched));
        }
        // If ranks 0 to n - 1 all touch the same box, the side is stored as a prefix, so that equal sides have equal
        // forms.
        if let Some((_, first)) = rows.first()
            && let [one] = first.boxes()
            && rows.iter().all(|(_, region)| region == first)
        {
            return Ok(Self::prefix(layout.chunks(), buffer, *one));
        }
        Ok(Self::table(buffer, rows))
    }

    /// Returns the region that mappers touch for the whole range.
    pub fn image(
        geometry: &Geometry,
        mappers: &[(Mapper, Option<[DimRule; 3]>)],
        buffer: Box3,
        dims: usize,
    ) -> Result<Region, String> {
        let mut image = Region::empty();
        for (mapper, rules) in mappers {
            let touched = match rules {
                None => mapper.evaluate(geometry, &geometry.range(), &buffer, dims)?,
                Some(rules) => {
                    let (mut min, mut max) = (buffer.min, buffer.max);
                    let range = geometry.range();
                    for (d, rule) in rules.iter().enumerate() {
                        let (low, high) = match *rule {
                            DimRule::Const { low, high } => (low, high),
                            DimRule::Follow { dim, low, high } => (range.min[dim] + low, range.max[dim] + high),
                        };
                        min[d] = min[d].max(low);
                        max[d] = max[d].min(high);
                    }
                    Box3::new(min, max).into()
                }
            };
            image = image.union(&touched);
        }
        Ok(image)
    }

    pub fn at(&self, rank: u32) -> Region {
        match &self.form {
            Form::Affine(affine) => {
                let columns = affine.axes[1].parts;
                if rank >= affine.axes[0].parts * columns {
                    return Region::empty();
                }
                let parts = [rank / columns, rank % columns];
                if let [term] = &affine.terms[..] {
                    return affine.term_at(term, parts, &self.buffer).into();
                }
                Region::of(affine.terms.iter().map(|t| affine.term_at(t, parts, &self.buffer)))
            }
            Form::Table(rows) => {
                let found = rows.binary_search_by_key(&rank, |row| row.0);
                found.map_or_else(|_| Region::empty(), |k| rows[k].1.clone())
            }
        }
    }

    pub fn touching(&self, region: &Region) -> Ranks {
        match &self.form {
            Form::Affine(affine) => {
                let columns = affine.axes[1].parts;
                let mut intervals = Vec::new();
                for window in region.boxes() {
                    for term in &affine.terms {
                        let Some([rows, cols]) = affine.parts_touching(term, &window.intersect(&self.buffer)) else {
                            continue;
                        };
                        if cols == (0, columns) {
                            intervals.push((rows.0 * columns, rows.1 * columns));
                        } else {
                            intervals.extend((rows.0..rows.1).map(|r| (r * columns + cols.0, r * columns + cols.1)));
                        }
                    }
                }
                Ranks::of(intervals)
            }
            Form::Table(rows) => {
                Ranks::of(rows.iter().filter(|(_, r)| r.overlaps(region)).map(|&(k, _)| (k, k + 1)).collect())
            }
        }
    }

    /// Returns representative ranks for a comparison of this side with `other` on a region, if each has a single affine
    /// term.
    ///
    /// The start of a part is a linear function of the part's number, except at one bend, after which parts are
    /// smaller. The distance by which one side extends past the other is therefore linear between two of these points:
    /// bends, ends, and the edges of the region. Its extremes are at these points. The neighbors of each of these
    /// points are included because of rounding and clamping.
    pub fn turns(&self, other: &Side, region: &Region) -> Option<Vec<u32>> {
        let (Form::Affine(ours), Form::Affine(theirs)) = (&self.form, &other.form) else { return None };
        if ours.terms.len() != 1 || theirs.terms.len() != 1 {
            return None;
        }
        let marks = |k: usize| {
            let axis = &ours.axes[k];
            let mut marks = vec![0, axis.parts - 1, axis.bend(), theirs.axes[k].bend(), theirs.axes[k].parts - 1];
            for affine in [ours, theirs] {
                for window in region.boxes() {
                    if let Some(parts) = affine.parts_touching(&affine.terms[0], window) {
                        marks.extend([parts[k].0, parts[k].1]);
                    }
                }
            }
            let near = |mark: u32| mark.saturating_sub(3)..=mark.saturating_add(3);
            let mut parts: Vec<u32> = marks.into_iter().flat_map(near).filter(|&part| part < axis.parts).collect();
            parts.sort_unstable();
            parts.dedup();
            parts
        };
        let columns = ours.axes[1].parts;
        let across = marks(1);
        Some(marks(0).into_iter().flat_map(|row| across.iter().map(move |column| row * columns + column)).collect())
    }

    /// Returns a number n of ranks, and a region that all ranks `0..n` touch. For an affine side, n is the number of
    /// chunks, and only constant terms count. For a table, n is the number of rows.
    pub fn common(&self) -> (u32, Region) {
        match &self.form {
            Form::Affine(affine) => {
                let constant = affine.terms.iter().filter(|t| t.is_const());
                let common = Region::of(constant.map(|t| affine.term_at(t, [0, 0], &self.buffer)));
                (affine.axes[0].parts * affine.axes[1].parts, common)
            }
            Form::Table(rows) => {
                let ranks = narrow(rows.len());
                // If a rank below the last one touches nothing, the common region is empty.
                let dense = rows.last().is_some_and(|&(last, _)| last + 1 == ranks);
                let mut regions = rows.iter().map(|(_, region)| region);
                let first = if dense { regions.next().cloned() } else { None };
                (ranks, first.map_or_else(Region::empty, |first| regions.fold(first, |all, r| all.intersect(r))))
            }
        }
    }

    /// Returns whether no two ranks touch the same point of `within`. If a single affine term of the side touches
    /// `within`, points outside of `within` count too.
    pub fn is_disjoint(&self, within: &Region) -> bool {
        match &self.form {
            Form::Affine(affine) => {
                let ranks = affine.axes[0].parts * affine.axes[1].parts;
                let used: Vec<&Term> = affine
                    .terms
                    .iter()
                    .filter(|t| within.boxes().iter().any(|b| affine.parts_touching(t, b).is_some()))
                    .collect();
                match used[..] {
                    _ if ranks <= 1 => true,
                    [] => true,
                    [term] => affine.axes.iter().enumerate().all(|(k, axis)| {
                        axis.parts == 1 || term.follows().any(|(_, by, low, high)| by == k && high <= low)
                    }),
                    _ => {
                        let rows = (0..ranks).map(|rank| (rank, self.at(rank).intersect(within))).collect();
                        first_overlap(rows).is_none()
                    }
                }
            }
            Form::Table(rows) => {
                let rows = rows.iter().map(|(rank, region)| (*rank, region.intersect(within))).collect();
                first_overlap(rows).is_none()
            }
        }
    }

    /// Returns two ranks below `nodes` that touch common points, and some of these points; `None` if there are none.
    pub fn overlap(&self, nodes: u32) -> Option<(u32, u32, Region)> {
        first_overlap((0..nodes).map(|rank| (rank, self.at(rank))).collect())
    }
}

/// Returns two ranks whose regions overlap, and common points; `None` if there are none. A sweep along dimension 0
/// avoids comparing regions that are far apart.
fn first_overlap(rows: Vec<(u32, Region)>) -> Option<(u32, u32, Region)> {
    let mut boxes: Vec<(Box3, u32)> = rows.iter().flat_map(|(k, r)| r.boxes().iter().map(move |b| (*b, *k))).collect();
    boxes.sort_unstable();
    let mut open: Vec<(Box3, u32)> = Vec::new();
    for (b, rank) in boxes {
        open.retain(|(o, _)| o.max[0] > b.min[0]);
        if let Some((o, other)) = open.iter().find(|(o, other)| *other != rank && o.overlaps(&b)) {
            return Some((rank.min(*other), rank.max(*other), o.intersect(&b).into()));
        }
        open.push((b, rank));
    }
    None
}

/// Converts a rule for a split: dimensions of the range that are not divided become constants.
fn cut(rule: &DimRule, d: usize, geometry: &Geometry, axes: &[Axis; 2], buffer: &Box3) -> Rule {
    let constant = |low: i64, high: i64| Rule::Const { low: low.max(buffer.min[d]), high: high.min(buffer.max[d]) };
    match *rule {
        DimRule::Const { low, high } => constant(low, high),
        DimRule::Follow { dim, low, high } if dim < 2 && axes[dim].parts > 1 => Rule::Follow { axis: dim, low, high },
        DimRule::Follow { dim, low, high } => {
            let range = geometry.range();
            constant(range.min[dim] + low, range.max[dim] + high)
        }
    }
}

fn size_of(chunk: &Box3) -> [i64; 3] {
    std::array::from_fn(|d| chunk.max[d] - chunk.min[d])
}

#[derive(Default)]
pub struct Sides {
    rows: Vec<Side>,
    ids: FxHashMap<Side, SideId>,
}

impl Sides {
    pub fn intern(&mut self, side: Side) -> SideId {
        if let Some(&id) = self.ids.get(&side) {
            return id;
        }
        let id = SideId(u32::try_from(self.rows.len()).expect("fewer than 2^32 sides"));
        self.rows.push(side.clone());
        self.ids.insert(side, id);
        id
    }
}

impl std::ops::Index<SideId> for Sides {
    type Output = Side;
    fn index(&self, id: SideId) -> &Side {
        &self.rows[id.0 as usize]
    }
}
