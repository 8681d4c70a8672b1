//! `mimus grpc`: from its words to the exit code. Read it from the top.

mod describe;
mod input;
mod messages;
mod reflection;
mod schema;

use std::{error::Error as _, ffi::OsString, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mimus::{
    Coding,
    grpc::{Channel, Code, Metadata, Method, Status, Streaming},
    rt::Blocking,
};
use prost_reflect::{MethodDescriptor, prost::Message as _};

use self::{
    input::{Failed, Input},
    messages::{Dynamic, to_json},
    schema::Schema,
};
use crate::{
    address, client, docs,
    exit::{Exit, Failure, wrong_usage},
    fields::FieldFlags,
    flags::grpc::{GrpcFlags, Wanted, What},
    output::{harmless, tell, to_stdout},
};

/// Does what the words behind `mimus grpc` say.
pub(crate) fn run(words: impl IntoIterator<Item = OsString>) -> Exit {
    let flags = match GrpcFlags::from_words(words) {
        Ok(flags) => flags,
        Err(error) => return wrong_usage(&error),
    };
    if let Some(answered) = docs::answer_grpc(&flags.about) {
        return finish(answered);
    }
    match flags.wanted() {
        Ok(wanted) => finish(perform(&flags, wanted)),
        Err(error) => wrong_usage(&error),
    }
}

fn finish(result: Result<(), Failure>) -> Exit {
    let Err(failure) = result else { return Exit::Ok };
    if !failure.quiet {
        tell(&format!("mimus: {failure}"));
    }
    failure.exit
}

fn perform(flags: &GrpcFlags, wanted: Wanted) -> Result<(), Failure> {
    let channel = wanted.url.map(|url| channel(flags, &url)).transpose()?;
    let mut schema = Schema::open(&flags.schema, channel.as_ref())?;
    match wanted.what {
        What::List(service) => list(&mut schema, service.as_deref()),
        What::Describe(name) => describe(&mut schema, name.as_deref()),
        What::Call(service, method) => {
            let method = schema.method(&service, &method)?;
            let Some(channel) = channel else {
                return Err(Failure::new(Exit::Usage, "a call needs a URL"));
            };
            call(flags, &channel, &method)
        }
    }
}

fn channel(flags: &GrpcFlags, url: &str) -> Result<Channel, Failure> {
    let client = client::for_grpc(flags)?;
    let url = address::complete(url)?;
    let channel = client.grpc(url).map_err(|e| Failure::new(Exit::Url, format!("{e:#}")))?;
    let mut channel = channel
        .timeout(flags.call.max_time)
        .send_compressed(flags.call.gzip.then_some(Coding::Gzip))
        .metadata_all(&metadata(flags)?);
    if let Some(most) = flags.call.max_message {
        channel = channel.max_receive(usize::try_from(most).unwrap_or(usize::MAX));
    }
    Ok(channel)
}

fn metadata(flags: &GrpcFlags) -> Result<Metadata, Failure> {
    let fields = FieldFlags::from_flags(&flags.call.header)?;
    let mut metadata = Metadata::new();
    if let Some(name) = fields.removed().next() {
        let what = format!("-H {name}: nothing can be taken out of a call");
        return Err(Failure::new(Exit::Usage, what));
    }
    for (name, value) in fields.send() {
        let invalid = |why: String| Failure::new(Exit::Usage, format!("-H {name}: {why}"));
        let added = match name.to_ascii_lowercase().ends_with("-bin") {
            false => metadata.append(name, value),
            true => {
                let bytes = STANDARD.decode(value.trim()).map_err(|e| invalid(e.to_string()))?;
                metadata.append_bin(name, &bytes)
            }
        };
        added.map_err(|e| invalid(e.to_string()))?;
    }
    Ok(metadata)
}

fn list(schema: &mut Schema, service: Option<&str>) -> Result<(), Failure> {
    let mut lines = match service {
        None => schema.services()?,
        Some(name) => {
            let service = schema.service(name)?;
            let methods = service.methods();
            methods.map(|method| format!("{name}/{}", method.name())).collect()
        }
    };
    lines.sort_unstable();
    print(lines.iter().map(String::as_str))
}

/// Writes lines whose words are a server's.
fn print<'a>(lines: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let lines = lines.map(|line| harmless(line.as_bytes()) + "\n");
    to_stdout(lines.collect::<String>().as_bytes())
}

fn describe(schema: &mut Schema, name: Option<&str>) -> Result<(), Failure> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => schema.services()?,
    };
    for name in names {
        print(describe::text(&schema.pool(&name)?, &name)?.lines())?;
    }
    Ok(())
}

fn call(flags: &GrpcFlags, channel: &Channel, called: &MethodDescriptor) -> Result<(), Failure> {
    let path = format!("{}/{}", called.parent_service().full_name(), called.name());
    let method = channel.method(&path, Dynamic::of(called));
    let failed = Failed::default();
    let input = Input::open(flags.call.data.as_deref(), called.input(), failed.clone())?;
    let replies = match called.is_client_streaming() {
        true => method.bidi(input.stream()),
        false => method.server_streaming(input.only()?),
    };
    let result = show(flags, called, replies);
    match (failed.take(), result) {
        (Some(failure), _) => Err(failure),
        (None, Err(Ended::Status(status))) => Err(failure(&status, called)),
        (None, Err(Ended::Output(failure))) => Err(failure),
        (None, Ok(0)) if !called.is_server_streaming() => {
            // The library leaves it to the kind of call, which here is the most general one.
            let status = Status::new(Code::Unimplemented, "the answer has no message");
            Err(failure(&status, called))
        }
        (None, Ok(_)) => Ok(()),
    }
}

/// Why showing replies ended early.
enum Ended {
    Status(Status),
    Output(Failure),
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Ended::Status(status)
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::Output(failure)
    }
}

/// Writes each reply when it comes, and tells how many came.
fn show(
    flags: &GrpcFlags,
    called: &MethodDescriptor,
    mut replies: Streaming<Dynamic>,
) -> Result<usize, Ended> {
    let most = if called.is_server_streaming() { usize::MAX } else { 1 };
    let mut count = 0;
    if flags.call.verbose
        && let Some(metadata) = Blocking::block_on(replies.metadata())
    {
        show_metadata("<", metadata);
    }
    while let Some(reply) = Blocking::block_on(replies.message())? {
        count += 1;
        if count > most {
            let what = "the answer has more than one message";
            return Err(Status::new(Code::Unimplemented, what).into());
        }
        let text = to_json(&reply, flags.call.emit_defaults, !flags.call.compact)
            .map_err(|e| Failure::new(Exit::Receive, format!("a reply is no JSON: {e}")))?;
        to_stdout(format!("{text}\n").as_bytes())?;
    }
    if let (true, Some(trailers)) = (flags.call.verbose, replies.trailers()) {
        show_metadata("<", trailers);
    }
    Ok(count)
}

fn show_metadata(mark: &str, metadata: &Metadata) {
    for (name, value) in metadata.fields().iter() {
        tell(&format!("{mark} {name}: {}", harmless(value)));
    }
}

/// `google.rpc.Status`, which is what a status's details are by convention.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_reflect::prost_types::Any>,
}

/// How a call that failed is told of.
fn failure(status: &Status, called: &MethodDescriptor) -> Failure {
    // What we could not even send is told as it is for any other transfer.
    if let (Code::Unavailable, Some(cause)) = (status.code(), status.source())
        && let Some(error) = cause.downcast_ref::<mimus::Error>()
    {
        return Failure::of(error, false);
    }
    let mut message = status.code().name().to_owned();
    if !status.message().is_empty() {
        message.push_str(&format!(": {}", harmless(status.message().as_bytes())));
    }
    let mut cause = status.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    let details = RpcStatus::decode(&status.details()[..]).unwrap_or_default().details;
    for detail in details {
        message.push_str(&format!("\n  {}", messages::detail(&detail, called.parent_pool())));
    }
    Failure::new(Exit::of_grpc(status.code()), message)
}

/// A method of the server's own that tells about the others.
fn ask<Q, A>(channel: &Channel, path: &str, question: Q) -> Result<A, Status>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let method: Method<mimus::grpc::Prost<Q, A>> = channel.method(path, mimus::grpc::Prost::new());
    Blocking::block_on(async {
        let mut answers = method.bidi(input::once(question));
        let none = || Status::new(Code::Unimplemented, "the server answered nothing");
        answers.message().await?.ok_or_else(none)
    })
}

/// Reads a file, or the standard input for `-`.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    crate::payload::read_input(path)
}
