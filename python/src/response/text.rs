//! Text of a body that comes in pieces.

use mimus::TextDecoder;
use pyo3::{
    intern,
    prelude::*,
    types::{PyBytes, PyDict, PyString},
};

use super::BaseResponse;

/// Who makes text of bytes: the core by the rules of browsers, or Python's codec for an encoding that was set.
pub(crate) enum Decoder {
    Own(TextDecoder),
    Codec(Py<PyAny>),
    Ended,
}

impl Decoder {
    /// For the body of `base`.
    ///
    /// # Errors
    /// `LookupError` where Python does not know the encoding that was set.
    pub(crate) fn new(py: Python<'_>, base: &BaseResponse) -> PyResult<Self> {
        let Some(encoding) = base.chosen_encoding() else {
            return Ok(Decoder::Own(TextDecoder::new(base.content_type(), None)));
        };
        let make = py.import("codecs")?.getattr("getincrementaldecoder")?;
        Ok(Decoder::Codec(make.call1((encoding,))?.call1(("replace",))?.unbind()))
    }

    /// The text of one more piece, or of the end.
    pub(crate) fn decode<'py>(
        &mut self,
        py: Python<'py>,
        data: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyString>> {
        match (&mut *self, data) {
            (Decoder::Own(decoder), Some(data)) => Ok(PyString::new(py, &decoder.decode(data))),
            (Decoder::Codec(codec), Some(data)) => {
                let text = codec.bind(py).call_method1(intern!(py, "decode"), (data,))?;
                Ok(text.cast_into()?)
            }
            (_, None) | (Decoder::Ended, _) => match std::mem::replace(self, Decoder::Ended) {
                Decoder::Own(decoder) => Ok(PyString::new(py, &decoder.finish())),
                Decoder::Codec(codec) => {
                    let last = PyDict::new(py);
                    last.set_item("final", true)?;
                    let nothing = (PyBytes::new(py, b""),);
                    let decode = codec.bind(py).getattr(intern!(py, "decode"))?;
                    Ok(decode.call(nothing, Some(&last))?.cast_into()?)
                }
                Decoder::Ended => Ok(PyString::new(py, "")),
            },
        }
    }

    /// Whether the end has come.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Decoder::Ended)
    }
}
