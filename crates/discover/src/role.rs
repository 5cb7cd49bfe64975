//! The role of a task for one buffer: all its reads together, all its writes, or all its reductions.
//!
//! A role stores the mappers as written, for the test whether a forward is free of communication, and the resulting
//! side, on which the exchange depends. Tasks of equal geometry and mappers share a role.

use rustc_hash::FxHashMap;

use crate::{
    mapper::{DimRule, Mapper},
    side::{Side, SideId, Sides},
    space::{Box3, Region},
    split::Geometry,
    traced::Dependence,
};

/// The index of a role in `Roles`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoleId(pub u32);

/// The dependence of one dimension of a mapper on the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DimKind {
    Constant,
    /// Exactly the chunk's interval in a dimension that the split divides.
    Split(usize),
    Other,
}

/// The properties of a mapper that Table 2 of "Automatic Discovery of Collective Communication Patterns" (Knorr and
/// others, 2024) uses. They depend only on the mapper and the type of split.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Traits {
    pub constant: bool,
    pub disjoint: bool,
    pub dims: [DimKind; 3],
}

impl Traits {
    const UNKNOWN: Self = Self { constant: false, disjoint: false, dims: [DimKind::Other; 3] };

    fn of(mapper: &Mapper, rules: Option<&[DimRule; 3]>, geometry: &Geometry, dims: usize) -> Self {
        match (mapper, rules) {
            // A projection stands for a user's function, of which no property is known without a call.
            (Mapper::Project(_), _) => Self::UNKNOWN,
            (Mapper::User(user), _) => match user.traced.at(geometry.dims, dims).map(Vec::as_slice) {
                Some([one]) => Self::of_box(*one, geometry),
                Some(boxes) if boxes.iter().all(|b| Self::of_box(*b, geometry).constant) => {
                    Self { constant: true, disjoint: false, dims: [DimKind::Constant; 3] }
                }
                _ => Self::UNKNOWN,
            },
            (_, Some(rules)) => Self::of_box(rules.map(Dependence::from), geometry),
            _ => Self::UNKNOWN,
        }
    }

    fn of_box(depends: [Dependence; 3], geometry: &Geometry) -> Self {
        let dims = depends.map(|one| match one {
            Dependence::Identity(by) if geometry.cuts(by) => DimKind::Split(by),
            Dependence::Apart(by) if geometry.cuts(by) => DimKind::Other,
            Dependence::Other(by) if (0..3).any(|d| by[d] && geometry.cuts(d)) => DimKind::Other,
            _ => DimKind::Constant,
        });
        let parts = |dim: usize| {
            depends.iter().any(|d| matches!(*d, Dependence::Identity(by) | Dependence::Apart(by) if by == dim))
        };
        Self {
            constant: dims.iter().all(|d| *d == DimKind::Constant),
            disjoint: (0..geometry.dims).all(|dim| !geometry.cuts(dim) || parts(dim)),
            dims,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Role {
    /// The geometry of the task; `None` if the role belongs to no task, because it results from a combination of
    /// partial results.
    pub geometry: Option<Geometry>,
    pub mappers: Vec<Mapper>,
    /// The region that each mapper touches for the whole range.
    pub images: Vec<Region>,
    pub traits: Vec<Traits>,
    pub reduces: bool,
    /// The number of ranks with a chunk.
    pub chunks: u32,
    /// The union of the images; if a mapper has no rules, the union of the regions of all ranks instead.
    pub image: Region,
    pub side: SideId,
}

impl Role {
    /// Returns the mappers that touch a region, in ascending order.
    fn touching<'a>(&'a self, region: &'a Region) -> impl Iterator<Item = &'a Mapper> {
        self.mappers.iter().zip(&self.images).filter(|(_, image)| image.overlaps(region)).map(|(mapper, _)| mapper)
    }

    /// Returns whether the test of Algorithm 1 on `region` succeeds, as `papers/discovery/errata.md` defines it. The
    /// test succeeds if both geometries are equal and the multisets of mappers that touch the region are equal, or if
    /// each task has one chunk, on rank 0. A role without a task fails. A reduction fails unless both tasks have one
    /// chunk. The test compares mappers, not the number of ranks.
    pub fn communication_free(&self, reader: &Role, region: &Region) -> bool {
        let (Some(ours), Some(theirs)) = (self.geometry, reader.geometry) else { return false };
        if ours.is_unsplittable() && theirs.is_unsplittable() {
            return true;
        }
        !self.reduces && ours == theirs && self.touching(region).eq(reader.touching(region))
    }
}

type RoleKey = (Geometry, (Box3, usize), Vec<Mapper>, bool);

#[derive(Default)]
pub struct Roles {
    rows: Vec<Role>,
    ids: FxHashMap<RoleKey, RoleId>,
    made: FxHashMap<SideId, RoleId>,
}

impl Roles {
    fn push(&mut self, role: Role) -> RoleId {
        let id = RoleId(u32::try_from(self.rows.len()).expect("fewer than 2^32 roles"));
        self.rows.push(role);
        id
    }

    /// Returns the role of all `mappers` of one task and buffer. If the error concerns a single rank, the error names
    /// this rank.
    #[allow(clippy::too_many_arguments)]
    pub fn intern(
        &mut self,
        sides: &mut Sides,
        geometry: &Geometry,
        nodes: u32,
        mut mappers: Vec<Mapper>,
        reduces: bool,
        buffer: Box3,
        dims: usize,
        rows: bool,
    ) -> Result<RoleId, (Option<u32>, String)> {
        mappers.sort_unstable();
        let key = (*geometry, (buffer, dims), mappers, reduces);
        if let Some(&id) = self.ids.get(&key) {
            return Ok(id);
        }
        let fault = |why: String| (None, why);
        let mut ruled = Vec::with_capacity(key.2.len());
        for mapper in &key.2 {
            ruled.push((mapper.clone(), mapper.rules(geometry, &buffer, dims, rows).map_err(fault)?));
        }
        let images = ruled
            .iter()
            .map(|one| Side::image(geometry, std::slice::from_ref(one), buffer, dims))
            .collect::<Result<Vec<_>, _>>()
            .map_err(fault)?;
        let traits = ruled.iter().map(|(mapper, rules)| Traits::of(mapper, rules.as_ref(), geometry, dims)).collect();
        let side = Side::of_mappers(geometry, nodes, &ruled, buffer, dims)?;
        let chunks = geometry.layout(nodes).chunks();
        let image = if ruled.iter().all(|(_, rules)| rules.is_some()) {
            Region::of(images.iter().flat_map(|r| r.boxes().iter().copied()))
        } else {
            // For a user's function, the union of the results for the parts may differ from the result for the whole
            // range.
            (0..chunks).fold(Region::empty(), |all, rank| all.union(&side.at(rank)))
        };
        let role = Role {
            geometry: Some(*geometry),
            mappers: key.2.clone(),
            images,
            traits,
            reduces,
            chunks,
            image,
            side: sides.intern(side),
        };
        let id = self.push(role);
        self.ids.insert(key, id);
        Ok(id)
    }

    /// Returns the role of the ranks that have the result of combined partial results.
    pub fn holding(&mut self, side: SideId, image: Region) -> RoleId {
        if let Some(&id) = self.made.get(&side) {
            return id;
        }
        let role = Role {
            geometry: None,
            mappers: Vec::new(),
            images: Vec::new(),
            traits: Vec::new(),
            reduces: false,
            chunks: 0,
            image,
            side,
        };
        let id = self.push(role);
        self.made.insert(side, id);
        id
    }
}

impl std::ops::Index<RoleId> for Roles {
    type Output = Role;
    fn index(&self, id: RoleId) -> &Role {
        &self.rows[id.0 as usize]
    }
}
