//! The properties of the bits of results in the order in which an executor adds.

use serde::Serialize;
use unisono_schedule::verify::{Proof, Rounding, Roundings};

/// The properties that hold for all sizes and ways that were proved, in the order in which the executor adds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FileBits {
    pub bits: Vec<&'static str>,
    /// The reason why a property does not hold, in words.
    #[serde(rename = "unlike_elements")]
    pub unlike: Option<String>,
    /// The class of the elements; `None` without `place`, and if the sizes and ways have unlike classes.
    #[serde(skip)]
    pub class: Option<String>,
}

impl FileBits {
    /// Returns the properties that a proof found. Elements that an executor adds in an order of its own, which
    /// `own_order` describes, have no known expression.
    pub fn new(proof: &Proof, roundings: &Roundings, own_order: &str) -> Self {
        let mut found = Self {
            bits: proof.bits.clone(),
            unlike: proof.unlike_elements.clone(),
            class: proof.element_class.clone(),
        };
        if roundings.values().any(|rounding| matches!(rounding, Rounding::Own(_))) {
            found.drop("place", own_order);
            // The compared expressions do not show this order.
            found.unlike = Some(own_order.to_owned());
        }
        found
    }

    /// Drops a property and all that include it, with the reason.
    pub fn drop(&mut self, property: &str, reason: &str) {
        let Some(at) = self.bits.iter().position(|name| *name == property) else { return };
        self.bits.truncate(at);
        self.unlike.get_or_insert_with(|| reason.to_owned());
        self.class = None;
    }

    /// Keeps the properties that also hold in another way to run the file, or at another size, which `way` names.
    pub fn join(&mut self, other: &Self, way: &str) {
        if let Some(lacking) = self.bits.iter().find(|name| !other.bits.contains(name)).copied() {
            let why = other.unlike.as_deref().unwrap_or("ranks have different expressions");
            self.drop(lacking, &format!("{way}, {why}"));
        }
        self.class = self.class.take().filter(|class| other.class.as_ref() == Some(class));
    }
}
