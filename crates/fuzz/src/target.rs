//! A fuzz target.

/// The way in which inputs of a target are changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Words, numbers and lines.
    Text,
    /// Bytes, from which the target draws its decisions.
    Draws,
    /// Bytes of a `.plan` file, whose checksums are updated after each change.
    Plan,
}

/// A function that runs inputs, and its properties for the harness.
pub struct FuzzTarget {
    /// The folder in `corpus/`.
    pub name: &'static str,
    pub summary: &'static str,
    pub form: Form,
    /// Folders of the repository with more seeds, and the suffixes of their files.
    pub seeds: &'static [(&'static str, &'static str)],
    /// The number of changed inputs in a long run of the tests. A usual run takes a fifth of them.
    pub quick_runs: u32,
    /// Runs one input and returns whether it was accepted. A violated property is a panic.
    pub run: fn(&[u8]) -> bool,
}

impl FuzzTarget {
    /// Makes a target over texts, without its own seeds.
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
