//! Between messages and their bytes.

use bytes::{Bytes, BytesMut};

use crate::BoxError;

/// How the messages of a method become bytes and the other way round.
///
/// A codec is a value, so that one can carry what it needs to know (a descriptor, a schema). Each call
/// clones it.
pub trait Codec: Clone + Send + Sync + Unpin + 'static {
    /// What is sent.
    type Request: Send + 'static;
    /// What is received.
    type Reply: Send + 'static;

    /// What stands behind `application/grpc+` in `content-type`.
    const SUBTYPE: &'static str;

    /// Appends the message's bytes to `to`, which may hold other bytes already.
    ///
    /// # Errors
    /// The message cannot be serialized. The call fails with [`Code::Internal`](super::Code::Internal).
    fn encode(&self, message: Self::Request, to: &mut BytesMut) -> Result<(), BoxError>;

    /// The message that these are the bytes of.
    ///
    /// # Errors
    /// They are none. The call fails with [`Code::Internal`](super::Code::Internal).
    fn decode(&self, bytes: Bytes) -> Result<Self::Reply, BoxError>;
}

/// Messages as the bytes they are, said to be Protocol Buffers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Raw;

impl Codec for Raw {
    type Request = Bytes;
    type Reply = Bytes;
    const SUBTYPE: &'static str = "proto";

    fn encode(&self, message: Bytes, to: &mut BytesMut) -> Result<(), BoxError> {
        to.extend_from_slice(&message);
        Ok(())
    }

    fn decode(&self, bytes: Bytes) -> Result<Bytes, BoxError> {
        Ok(bytes)
    }
}

/// Declares a codec that is nothing but its two types.
#[cfg(any(feature = "json", feature = "grpc-prost"))]
macro_rules! typed {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        pub struct $name<Q, A>(std::marker::PhantomData<fn(Q) -> A>);

        impl<Q, A> $name<Q, A> {
            /// The codec for requests `Q` and replies `A`.
            #[must_use]
            pub const fn new() -> Self {
                Self(std::marker::PhantomData)
            }
        }

        impl<Q, A> Default for $name<Q, A> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<Q, A> Clone for $name<Q, A> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<Q, A> Copy for $name<Q, A> {}

        impl<Q, A> std::fmt::Debug for $name<Q, A> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

#[cfg(feature = "grpc-prost")]
typed! {
    /// Protocol Buffers by [`prost`], of requests `Q` and replies `A`.
    Prost
}

#[cfg(feature = "grpc-prost")]
impl<Q, A> Codec for Prost<Q, A>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    type Request = Q;
    type Reply = A;
    const SUBTYPE: &'static str = "proto";

    fn encode(&self, message: Q, to: &mut BytesMut) -> Result<(), BoxError> {
        to.reserve(message.encoded_len());
        Ok(message.encode(to)?)
    }

    fn decode(&self, bytes: Bytes) -> Result<A, BoxError> {
        Ok(A::decode(bytes)?)
    }
}

#[cfg(feature = "json")]
typed! {
    /// JSON by [`serde_json`], of requests `Q` and replies `A`.
    Json
}

#[cfg(feature = "json")]
impl<Q, A> Codec for Json<Q, A>
where
    Q: serde::Serialize + Send + 'static,
    A: serde::de::DeserializeOwned + Send + 'static,
{
    type Request = Q;
    type Reply = A;
    const SUBTYPE: &'static str = "json";

    fn encode(&self, message: Q, to: &mut BytesMut) -> Result<(), BoxError> {
        use bytes::BufMut;
        Ok(serde_json::to_writer(to.writer(), &message)?)
    }

    fn decode(&self, bytes: Bytes) -> Result<A, BoxError> {
        Ok(serde_json::from_slice(&bytes)?)
    }
}
