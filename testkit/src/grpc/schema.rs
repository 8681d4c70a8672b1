//! The messages of the echo service, and their descriptors, which reflection hands out.

use std::collections::HashMap;

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto,
    OneofDescriptorProto, ServiceDescriptorProto,
};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Pair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Fail {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(uint32, tag = "3")]
    pub(super) after: u32,
    #[prost(bool, tag = "4")]
    pub(super) with_details: bool,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Choice {
    #[prost(bool, tag = "12")]
    Flag(bool),
    #[prost(string, tag = "13")]
    Word(String),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EchoRequest {
    #[prost(string, tag = "1")]
    pub(super) text: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) payload: Vec<u8>,
    #[prost(uint32, tag = "3")]
    pub(super) count: u32,
    #[prost(uint32, tag = "4")]
    pub(super) delay_ms: u32,
    #[prost(message, optional, tag = "5")]
    pub(super) fail: Option<Fail>,
    #[prost(uint32, tag = "6")]
    pub(super) reply_bytes: u32,
    #[prost(string, repeated, tag = "7")]
    pub(super) tags: Vec<String>,
    #[prost(map = "string, int64", tag = "8")]
    pub(super) scores: HashMap<String, i64>,
    /// An open enum: what the client sent comes back, known or not.
    #[prost(int32, tag = "9")]
    pub(super) mood: i32,
    #[prost(int64, tag = "10")]
    pub(super) big: i64,
    #[prost(double, tag = "11")]
    pub(super) ratio: f64,
    #[prost(oneof = "Choice", tags = "12, 13")]
    pub(super) choice: Option<Choice>,
    #[prost(int32, repeated, tag = "14")]
    pub(super) numbers: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EchoReply {
    #[prost(message, optional, tag = "1")]
    pub(super) request: Option<EchoRequest>,
    #[prost(uint32, tag = "2")]
    pub(super) index: u32,
    #[prost(uint32, tag = "3")]
    pub(super) received: u32,
    #[prost(uint64, tag = "4")]
    pub(super) bytes: u64,
    #[prost(message, repeated, tag = "5")]
    pub(super) metadata: Vec<Pair>,
    #[prost(uint64, tag = "6")]
    pub(super) timeout_ms: u64,
    #[prost(bytes = "vec", tag = "7")]
    pub(super) filler: Vec<u8>,
    #[prost(bool, tag = "8")]
    pub(super) compressed: bool,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) details: Vec<prost_types::Any>,
}

/// The package of the echo service.
pub(super) const PACKAGE: &str = "mimus.test.v1";
const ECHO_FILE: &str = "mimus/test/v1/echo.proto";
const TYPES_FILE: &str = "mimus/test/v1/types.proto";

/// The shape of a field.
enum Of {
    One(Type),
    Many(Type),
    /// A message or enum of the package, by its name.
    Named(Type, &'static str),
    ManyNamed(&'static str),
    /// A field of the only oneof.
    Chosen(Type),
}

fn field(name: &str, number: i32, of: &Of) -> FieldDescriptorProto {
    let (label, kind, named) = match of {
        Of::One(kind) | Of::Chosen(kind) => (Label::Optional, *kind, None),
        Of::Many(kind) => (Label::Repeated, *kind, None),
        Of::Named(kind, named) => (Label::Optional, *kind, Some(*named)),
        Of::ManyNamed(named) => (Label::Repeated, Type::Message, Some(*named)),
    };
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label as i32),
        r#type: Some(kind as i32),
        type_name: named.map(|named| format!(".{PACKAGE}.{named}")),
        oneof_index: matches!(of, Of::Chosen(_)).then_some(0),
        json_name: Some(camel(name)),
        ..Default::default()
    }
}

/// A field's name in JSON, as compilers derive it.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut whole, word| {
        let mut letters = word.chars();
        whole.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        whole + letters.as_str()
    })
}

fn message(name: &str, fields: &[(&str, i32, Of)]) -> DescriptorProto {
    DescriptorProto {
        name: Some(name.to_owned()),
        field: fields.iter().map(|(name, number, of)| field(name, *number, of)).collect(),
        ..Default::default()
    }
}

fn types_file() -> FileDescriptorProto {
    let value = |(number, name): (i32, &&str)| EnumValueDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(number),
        options: None,
    };
    let moods = ["MOOD_UNSPECIFIED", "MOOD_QUIET", "MOOD_SINGING"];
    FileDescriptorProto {
        name: Some(TYPES_FILE.to_owned()),
        package: Some(PACKAGE.to_owned()),
        message_type: vec![
            message(
                "Pair",
                &[("name", 1, Of::One(Type::String)), ("value", 2, Of::One(Type::String))],
            ),
            message(
                "Fail",
                &[
                    ("code", 1, Of::One(Type::Int32)),
                    ("message", 2, Of::One(Type::String)),
                    ("after", 3, Of::One(Type::Uint32)),
                    ("with_details", 4, Of::One(Type::Bool)),
                ],
            ),
        ],
        enum_type: vec![EnumDescriptorProto {
            name: Some("Mood".to_owned()),
            value: (0..).zip(&moods).map(value).collect(),
            ..Default::default()
        }],
        syntax: Some("proto3".to_owned()),
        ..Default::default()
    }
}

fn request() -> DescriptorProto {
    let mut request = message(
        "EchoRequest",
        &[
            ("text", 1, Of::One(Type::String)),
            ("payload", 2, Of::One(Type::Bytes)),
            ("count", 3, Of::One(Type::Uint32)),
            ("delay_ms", 4, Of::One(Type::Uint32)),
            ("fail", 5, Of::Named(Type::Message, "Fail")),
            ("reply_bytes", 6, Of::One(Type::Uint32)),
            ("tags", 7, Of::Many(Type::String)),
            ("scores", 8, Of::ManyNamed("EchoRequest.ScoresEntry")),
            ("mood", 9, Of::Named(Type::Enum, "Mood")),
            ("big", 10, Of::One(Type::Int64)),
            ("ratio", 11, Of::One(Type::Double)),
            ("flag", 12, Of::Chosen(Type::Bool)),
            ("word", 13, Of::Chosen(Type::String)),
            ("numbers", 14, Of::Many(Type::Int32)),
        ],
    );
    request.oneof_decl =
        vec![OneofDescriptorProto { name: Some("choice".to_owned()), options: None }];
    let mut entry = message(
        "ScoresEntry",
        &[("key", 1, Of::One(Type::String)), ("value", 2, Of::One(Type::Int64))],
    );
    entry.options = Some(MessageOptions { map_entry: Some(true), ..Default::default() });
    request.nested_type = vec![entry];
    request
}

fn reply() -> DescriptorProto {
    message(
        "EchoReply",
        &[
            ("request", 1, Of::Named(Type::Message, "EchoRequest")),
            ("index", 2, Of::One(Type::Uint32)),
            ("received", 3, Of::One(Type::Uint32)),
            ("bytes", 4, Of::One(Type::Uint64)),
            ("metadata", 5, Of::ManyNamed("Pair")),
            ("timeout_ms", 6, Of::One(Type::Uint64)),
            ("filler", 7, Of::One(Type::Bytes)),
            ("compressed", 8, Of::One(Type::Bool)),
        ],
    )
}

fn echo_file() -> FileDescriptorProto {
    let method = |name: &str, client: bool, server: bool| MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(format!(".{PACKAGE}.EchoRequest")),
        output_type: Some(format!(".{PACKAGE}.EchoReply")),
        client_streaming: Some(client),
        server_streaming: Some(server),
        options: None,
    };
    FileDescriptorProto {
        name: Some(ECHO_FILE.to_owned()),
        package: Some(PACKAGE.to_owned()),
        dependency: vec![TYPES_FILE.to_owned()],
        message_type: vec![request(), reply()],
        service: vec![ServiceDescriptorProto {
            name: Some("Echo".to_owned()),
            method: vec![
                method("Unary", false, false),
                method("ClientStream", true, false),
                method("ServerStream", false, true),
                method("BidiStream", true, true),
            ],
            options: None,
        }],
        syntax: Some("proto3".to_owned()),
        ..Default::default()
    }
}

/// The files of the package; each after what it imports.
pub(super) fn files() -> Vec<FileDescriptorProto> {
    vec![types_file(), echo_file()]
}

/// The descriptors of the echo service as an encoded `FileDescriptorSet`, which is what
/// `protoc --include_imports --descriptor_set_out` would write of `src/grpc/echo.proto`.
pub fn descriptors() -> Vec<u8> {
    FileDescriptorSet { file: files() }.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_say_what_the_files_for_humans_say() {
        let texts = [include_str!("types.proto"), include_str!("echo.proto")];
        let mut found = 0;
        for (file, text) in files().iter().zip(texts) {
            for message in &file.message_type {
                let name = message.name();
                let begin = text.find(&format!("message {name} {{")).expect(name);
                let body = &text[begin..begin + text[begin..].find("\n}").expect("its end")];
                for field in &message.field {
                    let line = format!(" {} = {};", field.name(), field.number());
                    assert!(body.contains(&line), "{name}:{line}");
                    found += 1;
                }
            }
            for method in file.service.iter().flat_map(|service| &service.method) {
                assert!(text.contains(&format!("rpc {}(", method.name())));
            }
        }
        let fields = texts.concat().lines().filter(|line| line.contains(" = ")).count();
        // The syntax lines and the enum's values look alike.
        assert_eq!(found, fields - texts.len() - 3);
    }

    #[test]
    fn names_in_json_are_derived() {
        assert_eq!((camel("delay_ms").as_str(), camel("text").as_str()), ("delayMs", "text"));
    }
}
