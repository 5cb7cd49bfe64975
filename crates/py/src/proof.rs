//! `Proof`, and the functions that prove a `Schedule`.

use pyo3::{exceptions::PyTypeError, prelude::*};
use unisono_lower::VerifiedFile;
use unisono_schedule::verify::{self, Method, Seed};

use crate::{
    convert,
    errors::{detached, to_python, verify_error},
    schedule::Schedule,
};

impl Schedule {
    /// Returns the schedule with its proof, for lowering and emission.
    ///
    /// # Errors
    /// Returns `VerifyError` with the diagnostics of the proof and of the placement.
    pub fn verified(&self, py: Python<'_>) -> PyResult<VerifiedFile<'_>> {
        let proven = detached(py, || match &self.expected {
            Some(expected) => VerifiedFile::of_messages(&self.file, Method::Auto, expected),
            None => VerifiedFile::new(&self.file, Method::Auto),
        })?;
        proven.map_err(|proof| verify_error(py, &proof.diagnostics))
    }

    /// Returns a proof with a random seed. The proof holds only if there are no findings about the placement.
    pub fn prove(&self, method: Method) -> verify::Proof {
        self.prove_seeded(method, Seed::random())
    }

    /// Repeats an earlier proof from its `seed`, and adds findings about the placement.
    pub fn prove_seeded(&self, method: Method, seed: Seed) -> verify::Proof {
        let mut proof = match &self.expected {
            Some(expected) => verify::verify_with(self.inner(), method, seed, expected),
            None => verify::verify_seeded(self.inner(), method, seed),
        };
        proof.diagnostics.extend(self.file.check());
        proof
    }
}

/// The result of a proof, with its findings. Its truth value is true if the proof holds.
#[pyclass(frozen, module = "unisono")]
pub struct Proof {
    pub(crate) proof: verify::Proof,
}

#[pymethods]
impl Proof {
    /// True if every output has exactly the required contents.
    #[getter]
    fn complete(&self) -> bool {
        self.proof.complete
    }

    /// True if every instruction can run, whatever the speeds of ranks and messages.
    #[getter]
    fn deadlock_free(&self) -> bool {
        self.proof.deadlock_free
    }

    /// True if no two instructions access the same memory without an order, where one of them writes.
    #[getter]
    fn race_free(&self) -> bool {
        self.proof.race_free
    }

    /// True if every run gives the same bits, and all ranks of an allreduce get the same ones.
    #[getter]
    fn repeatable(&self) -> bool {
        self.proof.repeatable
    }

    /// `exact` or `fingerprint`.
    #[getter]
    fn method(&self) -> &str {
        self.proof.method
    }

    /// An upper bound of the probability that a wrong schedule passes a proof by fingerprint; None for an exact proof.
    #[getter]
    fn error_probability(&self) -> Option<f64> {
        self.proof.error_probability
    }

    /// The seed that repeats a proof by fingerprint; None for an exact proof.
    #[getter]
    fn seed(&self) -> Option<String> {
        self.proof.seed.map(|seed| seed.to_string())
    }

    /// The bytes of scratch memory of the node that needs the most.
    #[getter]
    fn scratch_bytes_max(&self) -> u64 {
        self.proof.scratch_bytes_max.0
    }

    /// The digest of the results' expressions: schedules of one collective with the same digest give the same bits.
    /// None if the results are not proved, or have too many combinations.
    #[getter]
    fn expression_class(&self) -> Option<&str> {
        self.proof.expression_class.as_deref()
    }

    /// The names of the bitwise properties that hold, of `ranks` and `place`.
    #[getter]
    fn bits(&self) -> Vec<&'static str> {
        self.proof.bits.clone()
    }

    /// The digest of the expression that all elements of a result have; None without the property `place`.
    #[getter]
    fn element_class(&self) -> Option<&str> {
        self.proof.element_class.as_deref()
    }

    /// Two elements of a result with different expressions, as a sentence; None with the property `place`, or if the
    /// schedule is not proved.
    #[getter]
    fn unlike_elements(&self) -> Option<&str> {
        self.proof.unlike_elements.as_deref()
    }

    /// The findings: dictionaries with the kind, the place and a sentence. Empty if the proof holds.
    #[getter]
    fn diagnostics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.proof.diagnostics)
    }

    /// True if there are no findings.
    #[getter]
    fn holds(&self) -> bool {
        self.proof.holds()
    }

    fn __bool__(&self) -> bool {
        self.proof.holds()
    }

    /// Returns the proof as a dictionary with the keys of `unisono verify --json`.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.proof)
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        convert::display(slf.as_any())
    }

    /// Returns the value itself, which nothing changes.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Proof is not pickled: send its `report()`, or send the schedule and call its `verify()` in the other process",
        ))
    }

    fn __repr__(&self) -> String {
        let verdict = if self.proof.holds() { "holds" } else { "fails" };
        format!("<unisono.Proof {verdict}, {} findings, {}>", self.proof.diagnostics.len(), self.proof.method)
    }
}
