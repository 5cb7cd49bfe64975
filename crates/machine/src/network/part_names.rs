//! Names of the parts of a plane, for the statement of failures.
//!
//! A node has a name of its own, such as `leaf 3`, and may lie within a larger part, such as `board 2,1`. A name stands
//! for all nodes that have it. `NAME to NAME` and `NAME-NAME` stand for all cables between the nodes of two names.
//!
//! Cables whose ends have the same roles, the same medium and the same speed form a class. `one-link` stands for one
//! cable of every class, so that networks of different families lose comparable cables. In most families, a symmetry
//! maps the cables of a class to each other. So the first cable that cuts off no accelerator represents its class, if
//! possible one whose ends lost no other cable. Classes without such a cable lose none.

use std::collections::{BTreeMap, BTreeSet};

use unisono_base::{interrupt::poll, narrow};

use super::{Cable, Failure, Plane, Topology, failures::leaves_all};

/// The name for the failure of one cable of every class.
const ONE_LINK: &str = "one-link";
/// The maximum number of cables of a class that are tried.
const MOST_TRIED: usize = 64;

/// The names that refer to a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeName {
    /// The role of the node, without a number: `leaf`.
    pub role: &'static str,
    /// The name of this node alone: `leaf 3`.
    pub own: String,
    /// The larger part that contains the node.
    pub within: Option<String>,
}

impl NodeName {
    pub fn new(role: &'static str, place: &[u32]) -> Self {
        let numbers: Vec<String> = place.iter().map(u32::to_string).collect();
        Self { role, own: format!("{role} {}", numbers.join(",")), within: None }
    }

    #[must_use]
    pub fn within(self, part: String) -> Self {
        Self { within: Some(part), ..self }
    }

    /// Appends the part that contains the node to the node's own name: `router 2 of group 1`.
    #[must_use]
    pub fn of(self, part: String) -> Self {
        Self { own: format!("{} of {part}", self.own), ..self }.within(part)
    }

    pub fn is(&self, name: &str) -> bool {
        self.own == name || self.within.as_deref() == Some(name)
    }
}

/// Returns the failures of a list with the numbers of nodes. Failures that already contain numbers are not changed.
///
/// # Errors
/// Returns a sentence if a text is neither a failure nor a name of a part.
pub fn numbered(whole: &dyn Topology, failed: &[String]) -> Result<Vec<String>, String> {
    let mut found = Vec::with_capacity(failed.len());
    // The plane is built only if a text is a name.
    let mut parts = None;
    for text in failed {
        let Err(accepted) = text.parse::<Failure>() else {
            found.push(text.clone());
            continue;
        };
        if parts.is_none() {
            parts = Some(Parts::new(whole)?);
        }
        let named = parts.as_ref().expect("made above").named(text, &accepted)?;
        found.extend(named.iter().map(Failure::to_string));
    }
    Ok(found)
}

struct Parts {
    plane: Plane,
    names: Vec<NodeName>,
}

impl Parts {
    fn new(whole: &dyn Topology) -> Result<Self, String> {
        let plane = whole.plane().map_err(|e| e.to_string())?;
        let names = (0..plane.nodes()).map(|node| whole.node_name(node)).collect();
        Ok(Self { plane, names })
    }

    fn named(&self, text: &str, accepted: &str) -> Result<Vec<Failure>, String> {
        if text == ONE_LINK {
            return self.one_of_each_class();
        }
        if let Some(nodes) = self.nodes(text) {
            return Ok(nodes.into_iter().map(Failure::Node).collect());
        }
        let (ends, count) = match text.rsplit_once(':').map(|(ends, count)| (ends, count.parse::<u32>())) {
            Some((ends, Ok(count))) if count > 0 => (ends, Some(count)),
            _ => (text, None),
        };
        let pair_of = |(a, b): (&str, &str)| Some((self.nodes(a)?, self.nodes(b)?));
        // A name may have dashes, so each of them may be the one between two names.
        let mut at_dashes = ends.match_indices('-').map(|(at, _)| (&ends[..at], &ends[at + 1..]));
        let pair = ends.split_once(" to ").and_then(pair_of).or_else(|| at_dashes.find_map(pair_of));
        let Some((from, to)) = pair else {
            let switch = self.names.last().map(|name| name.own.as_str()).unwrap_or_default();
            return Err(format!(
                "'{}' is not a failure; {accepted}, also {ONE_LINK} for one cable of every class, the name of a part such as \
                 '{}' or '{switch}', NAME to NAME for the cables between two parts, and 'plane K' for one of several planes",
                unisono_base::excerpt(text),
                self.names[0].own
            ));
        };
        self.between(ends, &from, &to, count)
    }

    /// Returns the nodes with a name, or in the part with that name; `None` if there are none.
    fn nodes(&self, name: &str) -> Option<BTreeSet<u32>> {
        let found: BTreeSet<u32> = (0..).zip(&self.names).filter(|(_, of)| of.is(name)).map(|(node, _)| node).collect();
        (!found.is_empty()).then_some(found)
    }

    /// Returns all cables between nodes of two parts, or the first `count` cables.
    fn between(
        &self,
        ends: &str,
        from: &BTreeSet<u32>,
        to: &BTreeSet<u32>,
        count: Option<u32>,
    ) -> Result<Vec<Failure>, String> {
        let mut cables = BTreeMap::<[u32; 2], u32>::new();
        for &a in from {
            let ends = self.plane.leaving(a).map(|id| self.plane.link(id).to).filter(|b| to.contains(b));
            // If both nodes belong to both parts, the pair is counted once.
            for b in ends.filter(|&b| !(from.contains(&b) && to.contains(&a) && b < a)) {
                *cables.entry([a.min(b), a.max(b)]).or_default() += 1;
            }
        }
        let all: u32 = cables.values().sum();
        if all == 0 {
            return Err(format!("no cable joins {}", ends.replacen(" to ", " and ", 1)));
        }
        let Some(mut left) = count else {
            return Ok(cables.into_keys().map(|ends| Failure::Cables(ends, None)).collect());
        };
        if left > all {
            let s = if all == 1 { "" } else { "s" };
            return Err(format!("{left} cables of {ends} failed, and there are {all} cable{s}"));
        }
        let mut taken = Vec::new();
        for (ends, found) in cables {
            let here = found.min(left);
            left -= here;
            taken.extend((here > 0).then_some(Failure::Cables(ends, Some(here))));
        }
        Ok(taken)
    }

    fn one_of_each_class(&self) -> Result<Vec<Failure>, String> {
        type Class = ([&'static str; 2], Cable, u8);
        let mut classes = BTreeMap::<Class, Vec<[u32; 2]>>::new();
        for (_, link) in (0_u32..).zip(self.plane.links()).filter(|(id, link)| link.back > *id) {
            let mut roles = [link.from, link.to].map(|node| self.names[node as usize].role);
            roles.sort_unstable();
            classes.entry((roles, link.cable, link.speed)).or_default().push([link.from, link.to]);
        }
        let mut lost = BTreeMap::<u32, u32>::new();
        let mut chosen: Vec<Failure> = Vec::new();
        for cables in classes.values() {
            poll();
            let links_left = |node: u32| {
                let links: u32 = narrow(self.plane.leaving(node).len());
                links - lost.get(&node).copied().unwrap_or(0)
            };
            let spares = |ends: &&[u32; 2]| ends.iter().all(|&n| n >= self.plane.accelerators() || links_left(n) > 1);
            let apart = |ends: &&[u32; 2]| ends.iter().all(|n| !lost.contains_key(n));
            let usable = || cables.iter().filter(spares);
            let failure = |&[a, b]: &[u32; 2]| {
                let several = self.plane.links_between(a, b).count() > 1;
                ([a, b], Failure::Cables([a.min(b), a.max(b)], several.then_some(1)))
            };
            let mut tried = usable().filter(apart).chain(usable()).take(MOST_TRIED).map(failure);
            let keeps_all = |(_, one): &([u32; 2], Failure)| leaves_all(&self.plane, &[&chosen[..], &[*one]].concat());
            let Some((ends, one)) = tried.find(keeps_all) else { continue };
            for node in ends {
                *lost.entry(node).or_default() += 1;
            }
            chosen.push(one);
        }
        if chosen.is_empty() {
            return Err(format!("{ONE_LINK} fails nothing: every cable is the only one of an accelerator"));
        }
        chosen.sort_unstable();
        Ok(chosen)
    }
}
