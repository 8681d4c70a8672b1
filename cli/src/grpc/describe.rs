//! Definitions as people write them.

use std::fmt::Write as _;

use prost_reflect::{
    DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    ServiceDescriptor,
};

use crate::exit::{Exit, Failure};

/// The definition of a service, method, message or enum.
pub(super) fn text(pool: &DescriptorPool, name: &str) -> Result<String, Failure> {
    if let Some(service) = pool.get_service_by_name(name) {
        return Ok(service_text(&service));
    }
    if let Some(message) = pool.get_message_by_name(name) {
        let mut out = String::new();
        message_text(&message, message.full_name(), 0, &mut out);
        return Ok(out);
    }
    if let Some(found) = pool.get_enum_by_name(name) {
        let mut out = String::new();
        enum_text(&found, found.full_name(), 0, &mut out);
        return Ok(out);
    }
    let method = name.rsplit_once(['/', '.']).and_then(|(service, method)| {
        pool.get_service_by_name(service)?.methods().find(|found| found.name() == method)
    });
    match method {
        Some(method) => Ok(format!("{}\n", method_text(&method))),
        None => Err(Failure::new(Exit::Usage, format!("there is no definition of {name:?}"))),
    }
}

fn service_text(service: &ServiceDescriptor) -> String {
    let mut out = format!("service {} {{\n", service.full_name());
    for method in service.methods() {
        let _ = writeln!(out, "  {}", method_text(&method));
    }
    out.push_str("}\n");
    out
}

fn method_text(method: &MethodDescriptor) -> String {
    let many = |yes| if yes { "stream " } else { "" };
    format!(
        "rpc {}({}.{}) returns ({}.{});",
        method.name(),
        many(method.is_client_streaming()),
        method.input().full_name(),
        many(method.is_server_streaming()),
        method.output().full_name(),
    )
}

fn message_text(message: &MessageDescriptor, name: &str, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let _ = writeln!(out, "{indent}message {name} {{");
    for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
        let _ = writeln!(out, "{indent}  oneof {} {{", oneof.name());
        for field in oneof.fields() {
            let _ = writeln!(out, "{indent}    {}", field_text(&field));
        }
        let _ = writeln!(out, "{indent}  }}");
    }
    let alone =
        |field: &FieldDescriptor| field.containing_oneof().is_none_or(|oneof| oneof.is_synthetic());
    for field in message.fields().filter(alone) {
        let _ = writeln!(out, "{indent}  {}", field_text(&field));
    }
    for child in message.child_messages().filter(|child| !child.is_map_entry()) {
        message_text(&child, child.name(), depth + 1, out);
    }
    for child in message.child_enums() {
        enum_text(&child, child.name(), depth + 1, out);
    }
    let _ = writeln!(out, "{indent}}}");
}

fn field_text(field: &FieldDescriptor) -> String {
    let (name, number) = (field.name(), field.number());
    if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
        let key = kind_text(&entry.map_entry_key_field().kind());
        let value = kind_text(&entry.map_entry_value_field().kind());
        return format!("map<{key}, {value}> {name} = {number};");
    }
    let label = if field.is_list() {
        "repeated "
    } else if field.is_required() {
        "required "
    } else if field.containing_oneof().is_some_and(|oneof| oneof.is_synthetic()) {
        "optional "
    } else {
        ""
    };
    format!("{label}{} {name} = {number};", kind_text(&field.kind()))
}

fn kind_text(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => format!(".{}", message.full_name()),
        Kind::Enum(found) => format!(".{}", found.full_name()),
        // The scalar kinds are named as in a .proto file, but for their case.
        scalar => format!("{scalar:?}").to_ascii_lowercase(),
    }
}

fn enum_text(found: &EnumDescriptor, name: &str, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let _ = writeln!(out, "{indent}enum {name} {{");
    for value in found.values() {
        let _ = writeln!(out, "{indent}  {} = {};", value.name(), value.number());
    }
    let _ = writeln!(out, "{indent}}}");
}
