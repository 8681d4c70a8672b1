//! An event, to look at and to keep.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use bytestring::ByteString;

/// The type of an event that names none.
const MESSAGE: &str = "message";

/// Text of an event as it lies in memory, not looked at yet.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) bytes: &'a [u8],
    /// What the bytes are a part of, if there are any.
    pub(super) of: Option<&'a Bytes>,
}

impl<'a> Text<'a> {
    /// The standard decodes the stream as UTF-8, where what is malformed becomes U+FFFD. No line end can
    /// be part of what is malformed, so it is the same to decode each line of its own.
    fn to_str(self) -> Cow<'a, str> {
        match std::str::from_utf8(self.bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(self.bytes),
        }
    }

    fn to_owned(self) -> ByteString {
        let Some(of) = self.of.filter(|_| !self.bytes.is_empty()) else { return ByteString::new() };
        match ByteString::try_from(of.slice_ref(self.bytes)) {
            Ok(text) => text,
            Err(_) => self.to_str().into_owned().into(),
        }
    }
}

/// An event as it lies in what was read. Its texts are looked at when they are asked for.
#[derive(Clone, Copy)]
pub struct EventRef<'a> {
    pub(super) event: Text<'a>,
    pub(super) data: Text<'a>,
    pub(super) id: Text<'a>,
}

impl<'a> EventRef<'a> {
    /// The event's type: `message` where it names none.
    #[must_use]
    pub fn event(&self) -> Cow<'a, str> {
        match self.event.bytes {
            [] => Cow::Borrowed(MESSAGE),
            _ => self.event.to_str(),
        }
    }

    /// The data, its lines joined by LF.
    #[must_use]
    pub fn data(&self) -> Cow<'a, str> {
        self.data.to_str()
    }

    /// The data as it came: UTF-8, if the server kept to the standard.
    #[must_use]
    pub fn data_bytes(&self) -> &'a [u8] {
        self.data.bytes
    }

    /// The last event ID: that of this event, or of the last one before it that had one.
    #[must_use]
    pub fn id(&self) -> Cow<'a, str> {
        self.id.to_str()
    }

    /// The event to keep. Its texts share the memory of what was read, for as long as they live; only
    /// what was malformed is copied.
    #[must_use]
    pub fn to_owned(&self) -> Event {
        let event = match self.event.bytes {
            [] => ByteString::from_static(MESSAGE),
            _ => self.event.to_owned(),
        };
        Event { event, data: self.data.to_owned(), id: self.id.to_owned() }
    }
}

impl fmt::Debug for EventRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRef")
            .field("event", &self.event())
            .field("data", &self.data())
            .field("id", &self.id())
            .finish()
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Its type: `message` where it names none.
    pub event: ByteString,
    /// Its data, lines joined by LF.
    pub data: ByteString,
    /// The last event ID: that of this event, or of the last one before it that had one.
    pub id: ByteString,
}

impl Event {
    /// The data, read as JSON.
    ///
    /// # Errors
    /// The data is not such JSON.
    #[cfg(feature = "json")]
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.data)
    }
}
