//! The earlier commands that a command of a rank must wait for: true, anti- and output dependencies on the rank's own
//! memory, region by region.

use unisono_base::CommandId;

use crate::{
    region_map::RegionMap,
    space::{Box3, Region},
};

/// The number of readers of a region that are stored separately; more are merged.
const READERS: usize = 6;

/// The commands that a command waits for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Waits {
    /// Single commands, ascending.
    pub on: Vec<CommandId>,
    /// The last command of a range: the command also waits for all commands up to this one.
    pub all_until: Option<CommandId>,
}

impl Waits {
    fn add(&mut self, id: u32) {
        if id != NONE && !self.on.contains(&CommandId(id)) {
            self.on.push(CommandId(id));
        }
    }

    pub fn sort(&mut self) {
        let until = self.all_until;
        self.on.retain(|id| until.is_none_or(|until| *id > until));
        self.on.sort_unstable();
    }
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Debug)]
struct Use {
    writer: u32,
    readers: [u32; READERS],
    until: u32,
}

const UNUSED: Use = Use { writer: NONE, readers: [NONE; READERS], until: NONE };

/// The latest uses of one buffer's memory on one rank.
#[derive(Clone, Debug)]
pub struct Hazards {
    uses: RegionMap<Use>,
    scratch: Vec<(Box3, Use)>,
}

impl Hazards {
    pub fn new(buffer: Box3) -> Self {
        Self { uses: RegionMap::new(buffer, UNUSED), scratch: Vec::new() }
    }

    pub fn read(&mut self, id: CommandId, region: &Region, waits: &mut Waits) {
        for window in region.boxes() {
            self.scratch.clear();
            let scratch = &mut self.scratch;
            self.uses.query(window, |b, used| scratch.push((b, used)));
            for k in 0..self.scratch.len() {
                let (b, mut used) = self.scratch[k];
                waits.add(used.writer);
                if used.readers.contains(&id.0) {
                    continue;
                }
                match used.readers.iter().position(|&r| r == NONE) {
                    Some(free) => used.readers[free] = id.0,
                    None => {
                        // There is no room for another reader, so the stored readers are merged into `until`: a later
                        // writer waits for all commands up to the newest reader.
                        used.until = used.readers.iter().copied().max().unwrap_or(NONE);
                        used.readers = [NONE; READERS];
                        used.readers[0] = id.0;
                    }
                }
                self.uses.set(&b, used);
            }
        }
    }

    /// Records that command `id` writes a region, and adds the commands that it must wait for to `waits`.
    pub fn write(&mut self, id: CommandId, region: &Region, waits: &mut Waits) {
        for window in region.boxes() {
            self.uses.query(window, |_, used| {
                let mut read = false;
                for reader in used.readers.into_iter().filter(|&r| r != NONE && r != id.0) {
                    waits.add(reader);
                    read = true;
                }
                if used.until != NONE {
                    waits.all_until = waits.all_until.max(Some(CommandId(used.until)));
                    read = true;
                }
                // The previous writer need not be waited for if there are readers, because the readers have waited for
                // it.
                if !read && used.writer != id.0 {
                    waits.add(used.writer);
                }
            });
            self.uses.set(window, Use { writer: id.0, ..UNUSED });
        }
    }
}
