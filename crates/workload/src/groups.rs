//! Groups of ranks that communicate with each other. A rank is in at most one group.

/// The reason why lists of ranks are not groups.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GroupsError {
    #[error("a group has rank {rank}; accepted are 0 to {last}")]
    Range { rank: u64, last: u32 },
    #[error("rank {rank} is in two groups, or twice in one")]
    Twice { rank: u32 },
}

const NO_GROUP: u32 = u32::MAX;

/// The groups of a communication. The order of the ranks in a group is their order in the collective.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Groups {
    /// For each rank of the program, its group or [`NO_GROUP`], and its index in the group.
    of: Vec<(u32, u32)>,
    /// The ranks of all groups, one group after another.
    members: Vec<u32>,
    /// For each group, its end in `members`.
    ends: Vec<u32>,
}

impl Groups {
    /// Makes groups from lists of ranks below `ranks`. Empty lists are dropped.
    ///
    /// # Errors
    /// Returns an error if a rank does not exist or occurs twice.
    pub fn new(ranks: u32, lists: impl IntoIterator<Item = Vec<u32>>) -> Result<Self, GroupsError> {
        let mut groups =
            Self { of: vec![(NO_GROUP, 0); ranks as usize], members: Vec::with_capacity(ranks as usize), ends: vec![] };
        for list in lists.into_iter().filter(|list| !list.is_empty()) {
            let group = unisono_base::narrow(groups.ends.len());
            for (place, rank) in (0..).zip(list) {
                let last = ranks.saturating_sub(1);
                let of = groups.of.get_mut(rank as usize).ok_or(GroupsError::Range { rank: rank.into(), last })?;
                if of.0 != NO_GROUP {
                    return Err(GroupsError::Twice { rank });
                }
                *of = (group, place);
                groups.members.push(rank);
            }
            groups.ends.push(unisono_base::narrow(groups.members.len()));
        }
        Ok(groups)
    }

    pub fn all(ranks: u32) -> Self {
        Self::new(ranks, [(0..ranks).collect()]).expect("every rank once")
    }

    /// Returns the number of ranks of the program, in groups or not.
    pub fn ranks(&self) -> u32 {
        unisono_base::narrow(self.of.len())
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn group(&self, n: usize) -> &[u32] {
        let begin = n.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.members[begin as usize..self.ends[n] as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|n| self.group(n))
    }

    /// Returns the group of a rank and its index in the group; `None` if the rank is in no group.
    pub fn of(&self, rank: u32) -> Option<(&[u32], u32)> {
        let (group, place) = self.of[rank as usize];
        (group != NO_GROUP).then(|| (self.group(group as usize), place))
    }

    /// Returns the index of the group of a rank; `None` if the rank is in no group.
    pub fn number_of(&self, rank: u32) -> Option<usize> {
        let (group, _) = self.of[rank as usize];
        (group != NO_GROUP).then_some(group as usize)
    }

    /// Returns the distinct sizes of the groups, ascending.
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = self.iter().map(|group| unisono_base::narrow(group.len())).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    #[must_use]
    pub fn of_size(&self, size: u32) -> Self {
        let same = self.iter().filter(|group| group.len() == size as usize).map(<[u32]>::to_vec);
        Self::new(self.ranks(), same).expect("groups of groups")
    }
}
