//! Messages of types that are known at run time only, and their JSON.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use mimus::{BoxError, grpc::Codec};
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions,
    prost::Message as _, prost_types::Any,
};
use serde_json::Serializer;

/// The codec of a method's messages. A request may turn out not to be one while it is read, which then
/// ends the call.
#[derive(Debug, Clone)]
pub(super) struct Dynamic {
    reply: MessageDescriptor,
}

impl Dynamic {
    pub(super) fn of(method: &MethodDescriptor) -> Self {
        Dynamic { reply: method.output() }
    }
}

impl Codec for Dynamic {
    type Request = Result<DynamicMessage, BoxError>;
    type Reply = DynamicMessage;
    const SUBTYPE: &'static str = "proto";

    fn encode(&self, message: Self::Request, to: &mut BytesMut) -> Result<(), BoxError> {
        Ok(message?.encode(to)?)
    }

    fn decode(&self, bytes: Bytes) -> Result<DynamicMessage, BoxError> {
        Ok(DynamicMessage::decode(self.reply.clone(), bytes)?)
    }
}

/// A message as protobuf's JSON, indented or on one line.
pub(super) fn to_json(
    message: &DynamicMessage,
    defaults: bool,
    indented: bool,
) -> Result<String, serde_json::Error> {
    let options = SerializeOptions::new().skip_default_fields(!defaults);
    let mut text = Vec::new();
    match indented {
        true => message.serialize_with_options(&mut Serializer::pretty(&mut text), &options)?,
        false => message.serialize_with_options(&mut Serializer::new(&mut text), &options)?,
    }
    // What it writes is UTF-8.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A detail of a status: as JSON when its type is known, else its bytes.
pub(super) fn detail(any: &Any, pool: &DescriptorPool) -> String {
    let name = any.type_url.rsplit('/').next().unwrap_or_default();
    let known = pool.get_message_by_name(name);
    let json = known
        .and_then(|known| DynamicMessage::decode(known, &any.value[..]).ok())
        .and_then(|message| to_json(&message, false, false).ok());
    let name = crate::output::harmless(name.as_bytes());
    format!("{name} {}", json.unwrap_or_else(|| STANDARD.encode(&any.value)))
}
