//! Server reflection, `grpc.reflection.v1` and `v1alpha`: one wire, two names.

use std::io;

use prost::{Message, Oneof};
use prost_types::FileDescriptorProto;

use super::call::{Call, Stop, accept};
use super::code;
use super::schema::files;
use crate::conn::After;
use crate::exchange::Exchange;
use crate::routes::{Route, route};

const POST: &[&str] = &["POST"];

pub(super) const ROUTES: &[Route] = &[
    route(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        POST,
        "gRPC: server reflection; each file alone, without what it imports",
        |ex| Box::pin(reflect(ex)),
    ),
    route(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        POST,
        "gRPC: the same under its older name",
        |ex| Box::pin(reflect(ex)),
    ),
];

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(oneof = "Question", tags = "3, 4, 6, 7")]
    question: Option<Question>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Question {
    #[prost(string, tag = "3")]
    FileByFilename(String),
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    #[prost(string, tag = "6")]
    AllExtensionNumbersOfType(String),
    #[prost(string, tag = "7")]
    ListServices(String),
}

#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(string, tag = "1")]
    valid_host: String,
    #[prost(message, optional, tag = "2")]
    original_request: Option<Request>,
    #[prost(oneof = "Answer", tags = "4, 6, 7")]
    answer: Option<Answer>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Answer {
    #[prost(message, tag = "4")]
    Files(Files),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Error),
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file_descriptor_proto: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    service: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Error {
    #[prost(int32, tag = "1")]
    error_code: i32,
    #[prost(string, tag = "2")]
    error_message: String,
}

async fn reflect(ex: &mut Exchange) -> io::Result<After> {
    let mut call = match accept(ex).await? {
        Ok(call) => call,
        Err(after) => return Ok(after),
    };
    let done = converse(&mut call).await;
    call.settle(done).await
}

async fn converse(call: &mut Call<'_>) -> Result<(), Stop> {
    call.begin().await?;
    while let Some(request) = call.message::<Request>().await? {
        let answer = request.question.as_ref().map(answer);
        let valid_host = request.host.clone();
        call.reply(&Response { valid_host, original_request: Some(request), answer }).await?;
    }
    Ok(())
}

/// Every full name that a file defines.
fn symbols(file: &FileDescriptorProto) -> Vec<String> {
    let mut names = Vec::new();
    names.extend(file.message_type.iter().map(|message| message.name().to_owned()));
    names.extend(file.enum_type.iter().map(|one| one.name().to_owned()));
    for service in &file.service {
        names.push(service.name().to_owned());
        let methods = service.method.iter();
        names.extend(methods.map(|method| format!("{}.{}", service.name(), method.name())));
    }
    names.iter().map(|name| format!("{}.{name}", file.package())).collect()
}

fn answer(question: &Question) -> Answer {
    let files = files();
    let mut all = files.iter();
    let found = match question {
        Question::ListServices(_) => {
            let named = |file: &FileDescriptorProto| {
                let package = file.package().to_owned();
                let names = file.service.iter().map(move |one| format!("{package}.{}", one.name()));
                names.map(|name| Service { name }).collect::<Vec<_>>()
            };
            return Answer::Services(Services { service: files.iter().flat_map(named).collect() });
        }
        Question::FileByFilename(name) => all.find(|file| file.name() == name),
        Question::FileContainingSymbol(name) => all.find(|file| symbols(file).contains(name)),
        Question::AllExtensionNumbersOfType(_) => None,
    };
    match found {
        Some(file) => Answer::Files(Files { file_descriptor_proto: vec![file.encode_to_vec()] }),
        None => Answer::Error(Error {
            error_code: code::NOT_FOUND,
            error_message: "no such file or symbol".to_owned(),
        }),
    }
}
