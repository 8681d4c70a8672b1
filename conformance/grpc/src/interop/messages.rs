//! The messages of `grpc.testing.TestService`, as far as its cases need them.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Payload {
    /// 0 is the only kind there is.
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) body: Vec<u8>,
}

impl Payload {
    /// Zeros, as the descriptions have it.
    pub(super) fn zeros(size: usize) -> Option<Self> {
        Some(Payload { kind: 0, body: vec![0; size] })
    }
}

/// The status that the server is asked to end with.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EchoStatus {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SimpleRequest {
    #[prost(int32, tag = "2")]
    pub(super) response_size: i32,
    #[prost(message, optional, tag = "3")]
    pub(super) payload: Option<Payload>,
    #[prost(message, optional, tag = "7")]
    pub(super) response_status: Option<EchoStatus>,
}

/// `StreamingOutputCallResponse` is the same.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SimpleResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) payload: Option<Payload>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StreamingInputCallRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) payload: Option<Payload>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StreamingInputCallResponse {
    #[prost(int32, tag = "1")]
    pub(super) aggregated_payload_size: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseParameters {
    #[prost(int32, tag = "1")]
    pub(super) size: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StreamingOutputCallRequest {
    #[prost(message, repeated, tag = "2")]
    pub(super) response_parameters: Vec<ResponseParameters>,
    #[prost(message, optional, tag = "3")]
    pub(super) payload: Option<Payload>,
    #[prost(message, optional, tag = "7")]
    pub(super) response_status: Option<EchoStatus>,
}
