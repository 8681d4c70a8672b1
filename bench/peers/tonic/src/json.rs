//! JSON as a codec of tonic's, which brings none. The server takes the type that tonic always says,
//! `application/grpc`: it sends back what came.

use bytes::{Buf, BufMut};
use mimus_bench_grpc::Echo;
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// Messages of JSON, by serde.
#[derive(Debug, Clone, Copy)]
pub struct JsonCodec;

impl Codec for JsonCodec {
    type Encode = Echo;
    type Decode = Echo;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for JsonCodec {
    type Item = Echo;
    type Error = Status;

    fn encode(&mut self, message: Echo, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        serde_json::to_writer(out.writer(), &message).map_err(|e| Status::internal(e.to_string()))
    }
}

impl Decoder for JsonCodec {
    type Item = Echo;
    type Error = Status;

    fn decode(&mut self, input: &mut DecodeBuf<'_>) -> Result<Option<Echo>, Status> {
        let message = serde_json::from_reader(input.reader());
        message.map(Some).map_err(|e| Status::internal(e.to_string()))
    }
}
