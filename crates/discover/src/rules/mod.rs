//! The rules that choose the forward tasks of a read, and decide which of them become collectives.

pub(crate) mod full;
mod paper;
mod reduction;

use crate::{
    DiscoverError,
    exchange::{Group, Operation, Piece},
    pattern::Pattern,
    role::{RoleId, Roles},
    side::{SideId, Sides},
    space::{Box3, Region},
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rules {
    /// Algorithm 1 and Table 2 of "Automatic Discovery of Collective Communication Patterns" (Knorr and others, 2024),
    /// as `papers/discovery/errata.md` defines them.
    Paper,
    /// Rules beyond [`Rules::Paper`], which never move more bytes than point-to-point messages.
    #[default]
    Full,
    /// Collectives only for partial results; everything else is point-to-point.
    Off,
}

impl std::str::FromStr for Rules {
    type Err = DiscoverError;

    fn from_str(text: &str) -> Result<Self, DiscoverError> {
        match text {
            "paper" => Ok(Self::Paper),
            "full" => Ok(Self::Full),
            "off" => Ok(Self::Off),
            other => Err(DiscoverError::Input(format!("rules are '{other}'; accepted are paper, full, off"))),
        }
    }
}

/// A forward task of one read.
#[derive(Clone, PartialEq, Debug)]
pub struct Listing {
    pub producer: usize,
    pub region: Region,
    pub pattern: Option<Pattern>,
    pub group: Option<Group>,
}

#[derive(Clone, Default, Debug)]
pub struct Decision {
    pub listed: Vec<Listing>,
    /// The operations in the order of issue; `None` for a halo, whose messages are pushes.
    pub groups: Vec<Option<Operation>>,
}

/// One read of one buffer by one task.
pub struct Read {
    pub reader: RoleId,
    /// The region that the whole task reads.
    pub wanted: Region,
    /// The role of a later reader that needs the same contents on all ranks.
    pub later: Option<RoleId>,
    pub buffer: Box3,
    pub nodes: u32,
}

pub struct Tables<'a> {
    pub sides: &'a mut Sides,
    pub roles: &'a mut Roles,
}

impl Tables<'_> {
    fn side(&self, role: RoleId) -> SideId {
        self.roles[role].side
    }
}

/// Decides the exchange of a read, and changes `pieces` to the contents after it.
pub fn decide(rules: Rules, tables: &mut Tables<'_>, read: &Read, pieces: &mut Vec<Piece>) -> Decision {
    match rules {
        Rules::Paper => paper::decide(tables, read, pieces),
        Rules::Full => full::decide(tables, read, pieces),
        Rules::Off => reduction::decide(tables, read, pieces),
    }
}

/// Divides the pieces at the border of `region`, and calls `f` for those pieces inside `region` that satisfy `fits`.
fn within(pieces: &mut Vec<Piece>, region: &Region, fits: impl Fn(&Piece) -> bool, mut f: impl FnMut(&mut Piece)) {
    let mut outside = Vec::new();
    for piece in pieces.iter_mut() {
        let inside = piece.region.intersect(region);
        if inside.is_empty() || !fits(piece) {
            continue;
        }
        if inside != piece.region {
            outside.push(Piece { region: piece.region.minus(&inside), ..piece.clone() });
            piece.region = inside;
        }
        f(piece);
    }
    pieces.append(&mut outside);
}

/// Records that the ranks of a side have copies of a piece.
pub fn hold(piece: &mut Piece, side: SideId) {
    if piece.owner_side != side && !piece.holders.contains(&side) {
        piece.holders.push(side);
        piece.holders.sort_unstable();
    }
}
