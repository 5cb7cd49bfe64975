//! The description of a fuzz target.

/// Kind of a target's inputs, which determines the changes to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Words, numbers and lines.
    Text,
    /// Bytes, from which the target draws its decisions.
    Draws,
    /// Bytes of a `.plan` file, whose checksums are updated after most changes.
    Plan,
}

/// A function that runs inputs, and its properties.
pub struct FuzzTarget {
    /// Name of the target and of its folder in `corpus/`.
    pub name: &'static str,
    pub summary: &'static str,
    pub form: Form,
    /// Folders of the repository with additional seeds, each with the suffix of their file names.
    pub seeds: &'static [(&'static str, &'static str)],
    /// Number of changed inputs in a long run of the tests. A usual run takes a tenth of them.
    pub quick_runs: u32,
    /// Runs one input; returns whether the input was accepted. Panics if a property is violated.
    pub run: fn(&[u8]) -> bool,
}

impl FuzzTarget {
    /// Creates a target for texts, without its own seeds.
    pub const fn new(name: &'static str, summary: &'static str, run: fn(&[u8]) -> bool) -> Self {
        Self { name, summary, form: Form::Text, seeds: &[], quick_runs: 400, run }
    }

    pub const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    pub const fn seeds(mut self, seeds: &'static [(&'static str, &'static str)]) -> Self {
        self.seeds = seeds;
        self
    }

    pub const fn quick_runs(mut self, quick_runs: u32) -> Self {
        self.quick_runs = quick_runs;
        self
    }
}
