//! What the harness needs to know of a target.

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

pub trait Target: Sync {
    /// Its folder in `corpus/`.
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    fn form(&self) -> Form {
        Form::Text
    }
    /// Folders of the repository with more seeds, and how their files end.
    fn seeds(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    /// Changed inputs that `make test` runs.
    fn quick_runs(&self) -> u32 {
        400
    }
    /// Runs one input; true where it was accepted. A property that does not hold is a panic.
    fn run(&self, input: &[u8]) -> bool;
}
