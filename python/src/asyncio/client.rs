//! probe
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyBytes};

use super::{call::Call, runtime::Asyncio};

#[pyclass(frozen, module = "mimus")]
pub(crate) struct AsyncClient {
    client: mimus::Client,
}

#[pymethods]
impl AsyncClient {
    #[new]
    fn new() -> PyResult<Self> {
        let client = mimus::Client::builder().runtime(Asyncio).no_proxy().build();
        Ok(AsyncClient { client: client.map_err(|e| PyRuntimeError::new_err(format!("{e:#}")))? })
    }

    fn get(&self, url: &str) -> Call {
        let send = self.client.get(url).send();
        Call::new("get", async move {
            let fail = |e: mimus::Error| PyRuntimeError::new_err(format!("{e:#}"));
            let response = send.await.map_err(fail)?;
            let status = response.status().as_u16();
            let body = response.bytes().await.map_err(fail)?;
            Python::attach(|py| {
                Ok((status, PyBytes::new(py, &body)).into_pyobject(py)?.into_any().unbind())
            })
        })
    }

    fn close(&self) {
        self.client.close_idle();
    }
}
