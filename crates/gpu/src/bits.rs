//! The bit-level properties of a file's results (`ranks`, `place` and so on, see docs/proofs.md). These properties
//! depend on the order in which the executor adds.

use serde::Serialize;
use unisono_schedule::verify::{Proof, Rounding, Roundings};

/// The properties that hold at all proved sizes, and for each proved way to run a file, such as with two buffers or in
/// place.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FileBits {
    pub bits: Vec<&'static str>,
    /// The reason why the first missing property does not hold.
    #[serde(rename = "unlike_elements")]
    pub unlike: Option<String>,
    /// The digest of the elements' expressions ([`Proof::element_class`]); `None` without the property `place`, or if
    /// sizes or ways to run the file have different digests.
    #[serde(skip)]
    pub class: Option<String>,
}

impl FileBits {
    /// Returns the properties that a proof found. If the executor adds some elements in an order of its own, which
    /// `own_order` describes, the property `place` is removed.
    pub fn new(proof: &Proof, roundings: &Roundings, own_order: &str) -> Self {
        let mut found = Self {
            bits: proof.bits.clone(),
            unlike: proof.unlike_elements.clone(),
            class: proof.element_class.clone(),
        };
        if roundings.values().any(|rounding| matches!(rounding, Rounding::Own(_))) {
            found.drop("place", own_order);
            // The proof compares the expressions of the schedule, which do not contain the executor's order.
            found.unlike = Some(own_order.to_owned());
        }
        found
    }

    /// Removes a property and all stronger ones, if the property holds. Records the reason, unless an earlier reason is
    /// recorded.
    pub fn drop(&mut self, property: &str, reason: &str) {
        let Some(at) = self.bits.iter().position(|name| *name == property) else { return };
        self.bits.truncate(at);
        self.unlike.get_or_insert_with(|| reason.to_owned());
        self.class = None;
    }

    /// Removes the properties that `other` lacks. `way` names the way to run the file, or the size, for which `other`
    /// holds.
    pub fn join(&mut self, other: &Self, way: &str) {
        if let Some(lacking) = self.bits.iter().find(|name| !other.bits.contains(name)).copied() {
            let why = other.unlike.as_deref().unwrap_or("ranks have different expressions");
            self.drop(lacking, &format!("{way}, {why}"));
        }
        self.class = self.class.take().filter(|class| other.class.as_ref() == Some(class));
    }
}
