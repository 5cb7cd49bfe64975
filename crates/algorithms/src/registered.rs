//! The list of all algorithms: those of the catalog, and those that a program adds at run time.

use std::sync::{PoisonError, RwLock};

use crate::{ALGORITHMS, Algorithm, AlgorithmError};

/// The program's own algorithms, in the order in which they were added.
static OWN: RwLock<Vec<&'static dyn Algorithm>> = RwLock::new(Vec::new());

/// Returns the algorithms of the catalog, then the added algorithms.
pub fn algorithms() -> Vec<&'static dyn Algorithm> {
    let own = OWN.read().unwrap_or_else(PoisonError::into_inner);
    ALGORITHMS.iter().chain(own.iter()).copied().collect()
}

/// Removes an added algorithm. Returns true if an algorithm had that name.
pub fn unregister(name: &str) -> bool {
    let mut own = OWN.write().unwrap_or_else(PoisonError::into_inner);
    let before = own.len();
    own.retain(|a| a.name() != name);
    own.len() < before
}

/// Adds an algorithm for the rest of the process. It replaces an added algorithm of the same name, but existing plans
/// keep the replaced algorithm.
///
/// # Errors
/// Returns an error if the catalog has an algorithm of that name.
pub fn register(algorithm: Box<dyn Algorithm>) -> Result<(), AlgorithmError> {
    let name = algorithm.info().name;
    if ALGORITHMS.iter().any(|a| a.name() == name) {
        return Err(AlgorithmError::Taken { algorithm: name });
    }
    let mut own = OWN.write().unwrap_or_else(PoisonError::into_inner);
    own.retain(|a| a.name() != name);
    // Plans have `'static` references to algorithms, so added algorithms are never freed.
    own.push(Box::leak(algorithm));
    Ok(())
}
