//! What every lower bound says of itself, on whatever machine.

pub trait LowerBound: Sync {
    fn name(&self) -> &'static str;
    fn reference(&self) -> &'static str;
    /// What must hold of an algorithm for the bound to apply to it.
    fn assumes(&self) -> &'static str;
}
