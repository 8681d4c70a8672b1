//! The Python package `mimus`: what is Python's about it (arguments, objects, exceptions, the event loop). All that
//! is HTTP's is the Rust core's.

/// The compiled part of the package.
#[pyo3::pymodule(gil_used = false)]
mod _mimus {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
