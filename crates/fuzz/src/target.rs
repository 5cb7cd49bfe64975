//! A fuzz target.

/// How inputs of a target are changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Words, numbers and lines.
    Text,
    /// Bytes, from which the target draws its decisions.
    Draws,
    /// Bytes of a `.plan` file, whose checksums are computed again after each change.
    Plan,
}

/// A function that runs inputs, and what the harness needs to know of it.
pub struct FuzzTarget {
    /// The folder in `corpus/`.
    pub name: &'static str,
    pub summary: &'static str,
    pub form: Form,
    /// Folders of the repository with more seeds, and how their files end.
    pub seeds: &'static [(&'static str, &'static str)],
    /// Changed inputs that a long run of the tests takes; a usual run takes a fifth of them.
    pub quick_runs: u32,
    /// Runs one input; true where it was accepted. A property that does not hold is a panic.
    pub run: fn(&[u8]) -> bool,
}

impl FuzzTarget {
    /// A target over texts, without seeds of its own.
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
