//! The runner's messages, as far as a gRPC client needs them. Numbers and types are those of
//! `connectrpc.conformance.v1`; what is only handed on stays bytes, which the wire cannot tell apart.

use prost::{Message, Oneof};

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Header {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TlsCreds {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) cert: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) key: Vec<u8>,
}

/// `ClientCompatRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Request {
    #[prost(string, tag = "1")]
    pub(crate) test_name: String,
    #[prost(int32, tag = "3")]
    pub(crate) protocol: i32,
    #[prost(int32, tag = "4")]
    pub(crate) codec: i32,
    #[prost(int32, tag = "5")]
    pub(crate) compression: i32,
    #[prost(string, tag = "6")]
    pub(crate) host: String,
    #[prost(uint32, tag = "7")]
    pub(crate) port: u32,
    #[prost(bytes = "vec", tag = "8")]
    pub(crate) server_tls_cert: Vec<u8>,
    #[prost(message, optional, tag = "9")]
    pub(crate) client_tls_creds: Option<TlsCreds>,
    #[prost(uint32, tag = "10")]
    pub(crate) message_receive_limit: u32,
    #[prost(string, optional, tag = "11")]
    pub(crate) service: Option<String>,
    #[prost(string, optional, tag = "12")]
    pub(crate) method: Option<String>,
    #[prost(int32, tag = "13")]
    pub(crate) stream_type: i32,
    #[prost(message, repeated, tag = "15")]
    pub(crate) request_headers: Vec<Header>,
    #[prost(message, repeated, tag = "16")]
    pub(crate) request_messages: Vec<Any>,
    #[prost(uint32, optional, tag = "17")]
    pub(crate) timeout_ms: Option<u32>,
    #[prost(uint32, tag = "18")]
    pub(crate) request_delay_ms: u32,
    #[prost(message, optional, tag = "19")]
    pub(crate) cancel: Option<Cancel>,
}

pub(crate) const PROTOCOL_GRPC: i32 = 2;
pub(crate) const CODEC_PROTO: i32 = 1;
pub(crate) const COMPRESSION_IDENTITY: i32 = 1;
pub(crate) const COMPRESSION_GZIP: i32 = 2;
pub(crate) const UNARY: i32 = 1;
pub(crate) const CLIENT_STREAM: i32 = 2;
pub(crate) const SERVER_STREAM: i32 = 3;
pub(crate) const HALF_DUPLEX: i32 = 4;
pub(crate) const FULL_DUPLEX: i32 = 5;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Cancel {
    #[prost(oneof = "When", tags = "1, 2, 3")]
    pub(crate) when: Option<When>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum When {
    #[prost(message, tag = "1")]
    BeforeCloseSend(()),
    #[prost(uint32, tag = "2")]
    AfterCloseSendMs(u32),
    #[prost(uint32, tag = "3")]
    AfterNumResponses(u32),
}

/// Any of the service's replies: a payload, which is handed on as it is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Reply {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) payload: Vec<u8>,
}

/// `google.rpc.Status`, in `grpc-status-details-bin`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

/// `ClientCompatResponse`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Response {
    #[prost(string, tag = "1")]
    pub(crate) test_name: String,
    #[prost(oneof = "Outcome", tags = "2, 3")]
    pub(crate) outcome: Option<Outcome>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Outcome {
    #[prost(message, tag = "2")]
    Response(Answer),
    #[prost(message, tag = "3")]
    Error(Trouble),
}

/// `ClientErrorResult`: the call could not even be tried.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Trouble {
    #[prost(string, tag = "1")]
    pub(crate) message: String,
}

/// `ClientResponseResult`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Answer {
    #[prost(message, repeated, tag = "1")]
    pub(crate) headers: Vec<Header>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(crate) payloads: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    pub(crate) error: Option<RpcError>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) trailers: Vec<Header>,
    #[prost(int32, tag = "5")]
    pub(crate) unsent: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RpcError {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, optional, tag = "2")]
    pub(crate) message: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}
