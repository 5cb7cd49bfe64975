//! Node numbers of equal boxes: accelerators box by box, then the other nodes of the boxes, box by box, then the shared
//! switches.

/// The numbering of the nodes of equal boxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoxNumbers {
    pub boxes: u32,
    /// The number of accelerators of one box, which are its first nodes.
    pub accelerators: u32,
    /// The number of all nodes of one box.
    pub nodes: u32,
}

impl BoxNumbers {
    /// Returns the number of node `at` of box `of`. Numbers beyond 32 bits saturate, and every graph refuses them.
    pub fn place(&self, of: u32, at: u32) -> u32 {
        match at.checked_sub(self.accelerators) {
            None => of * self.accelerators + at,
            Some(other) => node(self.all() + u64::from(of) * self.others() + u64::from(other)),
        }
    }

    pub fn shared(&self, at: u32) -> u32 {
        node(self.all() + u64::from(self.boxes) * self.others() + u64::from(at))
    }

    /// Returns `(Some(box), index in the box)` of a node; `(None, index among the shared switches)` for a shared
    /// switch.
    pub fn place_of(&self, node: u32) -> (Option<u32>, u32) {
        match u64::from(node).checked_sub(self.all()) {
            None => (Some(node / self.accelerators), node % self.accelerators),
            Some(at) if at < u64::from(self.boxes) * self.others() => {
                (Some(unisono_base::narrow(at / self.others())), unisono_base::narrow(at % self.others()))
            }
            Some(at) => (None, unisono_base::narrow(at - u64::from(self.boxes) * self.others())),
        }
    }

    fn all(&self) -> u64 {
        u64::from(self.boxes) * u64::from(self.accelerators)
    }

    fn others(&self) -> u64 {
        u64::from(self.nodes - self.accelerators)
    }
}

fn node(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
