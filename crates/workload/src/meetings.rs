//! A check that all ranks of a group perform the same collectives in the same order.

use rustc_hash::{FxHashMap, FxHashSet};
use unisono_collective::Kind;

use crate::{Collected, Unmatched, Work, WorkloadGraph};

/// The rule, as error messages state it.
const ACCEPTED: &str = "accepted are traces in which all ranks of a group make the same collectives in the same order";

/// The collectives of a class for each set of groups, each with its node.
type Made = FxHashMap<u32, Vec<(Collected, usize)>>;

impl WorkloadGraph {
    /// Checks the collectives of every group. All ranks of the group must perform the same number of collectives, of
    /// the same kinds and with the same roots. Allreduces and reduces must have equal lengths; other collectives may
    /// differ in length. A program of one class is not checked. `process_group` returns the name, in the file, of the
    /// group of a rank's node. Groups with different names may have the same ranks. If both ranks use both names,
    /// matching collectives must have the same name.
    ///
    /// # Errors
    /// Returns an error that names the first collective of a rank that another rank of its group does not perform.
    pub fn check_collectives<'n>(
        &self,
        process_group: impl Fn(u32, usize) -> Option<&'n str>,
    ) -> Result<(), Unmatched> {
        if self.classes.len() < 2 {
            return Ok(());
        }
        let class_of = self.class_of();
        let made: Vec<Made> = (0..self.classes.len()).map(|class| self.made(class)).collect();
        let mut compared = FxHashSet::default();
        for (number, groups) in (0_u32..).zip(&self.groups) {
            for group in groups.iter() {
                let first = group[0];
                for &rank in &group[1..] {
                    let [one, other] = [first, rank].map(|rank| class_of[rank as usize]);
                    if one == other || !compared.insert((number, one, other)) {
                        continue;
                    }
                    let list = |class: Option<usize>| made[class?].get(&number);
                    let lists = [one, other].map(|class| list(class).map_or(&[][..], Vec::as_slice));
                    compare([first, rank], lists)?;
                    compare_names([first, rank], lists, &process_group)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn class_of(&self) -> Vec<Option<usize>> {
        let mut of = vec![None; self.ranks as usize];
        for (number, class) in self.classes.iter().enumerate() {
            for &rank in &class.ranks {
                of[rank as usize] = Some(number);
            }
        }
        of
    }

    fn made(&self, class: usize) -> Made {
        let mut made = Made::default();
        for (number, node) in self.classes[class].nodes.iter().enumerate() {
            if let Work::Collective(collected) = node.work {
                made.entry(collected.groups).or_default().push((collected, number));
            }
        }
        made
    }
}

fn compare([first, rank]: [u32; 2], [of_first, own]: [&[(Collected, usize)]; 2]) -> Result<(), Unmatched> {
    for ((theirs, _), (mine, node)) in of_first.iter().zip(own) {
        if !agree(theirs, mine) {
            let [mine, theirs] = [mine, theirs].map(shown);
            let message = format!("it is {mine}, where rank {first} of the same group makes {theirs}; {ACCEPTED}");
            return Err(Unmatched { rank, node: *node, message });
        }
    }
    let (longer, shorter, alone) = if of_first.len() > own.len() {
        (first, rank, of_first[own.len()])
    } else if own.len() > of_first.len() {
        (rank, first, own[of_first.len()])
    } else {
        return Ok(());
    };
    let (collected, node) = alone;
    let message =
        format!("it is {}, which rank {shorter} of the same group does not make; {ACCEPTED}", shown(&collected));
    Err(Unmatched { rank: longer, node, message })
}

/// Compares the group names of matching collectives, for names that both ranks use.
fn compare_names<'n>(
    [first, rank]: [u32; 2],
    [of_first, own]: [&[(Collected, usize)]; 2],
    process_group: impl Fn(u32, usize) -> Option<&'n str>,
) -> Result<(), Unmatched> {
    let names = |rank: u32, of: &[(Collected, usize)]| -> Vec<Option<&'n str>> {
        of.iter().map(|&(_, node)| process_group(rank, node)).collect()
    };
    let (theirs, mine) = (names(first, of_first), names(rank, own));
    let Some(at) = theirs.iter().zip(&mine).position(|(a, b)| a != b) else { return Ok(()) };
    let (Some(other), Some(name)) = (theirs[at], mine[at]) else { return Ok(()) };
    if !mine.contains(&Some(other)) || !theirs.contains(&Some(name)) {
        return Ok(());
    }
    let (does, [name, other]) = (shown(&own[at].0), [name, other].map(unisono_base::excerpt));
    let message = format!(
        "it is {does} in process group '{name}', where rank {first} makes one in process group '{other}' of the same ranks \
         first; {ACCEPTED}"
    );
    Err(Unmatched { rank, node: own[at].1, message })
}

fn agree(a: &Collected, b: &Collected) -> bool {
    let is_sum = matches!(a.kind, Kind::Allreduce | Kind::Reduce);
    (a.kind, a.root) == (b.kind, b.root) && (!is_sum || a.bytes == b.bytes)
}

pub(crate) fn shown(collected: &Collected) -> String {
    let root = if collected.kind.has_root() { format!(" with root {}", collected.root) } else { String::new() };
    format!("{} of {} bytes{root}", collected.kind.name(), collected.bytes)
}
