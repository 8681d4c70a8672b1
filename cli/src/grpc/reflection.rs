//! A server's own word about its services (`grpc.reflection.v1` and the older `v1alpha`, whose messages
//! are the same).

use std::collections::{BTreeMap, BTreeSet};

use mimus::grpc::{Channel, Code, Status};
use prost::{Message, Oneof};
use prost_reflect::{DescriptorPool, prost_types::FileDescriptorProto};

/// The most files, and bytes of them, that a server may need to define one name.
const FILES_MAX: usize = 10_000;
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// `ServerReflectionRequest`.
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(oneof = "About", tags = "3, 4, 7")]
    about: Option<About>,
}

#[derive(Clone, PartialEq, Oneof)]
enum About {
    /// `file_by_filename`
    #[prost(string, tag = "3")]
    File(String),
    /// `file_containing_symbol`
    #[prost(string, tag = "4")]
    Symbol(String),
    /// `list_services`
    #[prost(string, tag = "7")]
    Services(String),
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(oneof = "Said", tags = "4, 6, 7")]
    said: Option<Said>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Said {
    /// `file_descriptor_response`
    #[prost(message, tag = "4")]
    Files(Files),
    /// `list_services_response`
    #[prost(message, tag = "6")]
    Services(Services),
    /// `error_response`
    #[prost(message, tag = "7")]
    Error(ErrorAnswer),
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    services: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ErrorAnswer {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// A server that is asked.
pub(super) struct Reflection {
    channel: Channel,
    /// The version that it answered in.
    version: Option<&'static str>,
}

impl Reflection {
    pub(super) fn new(channel: Channel) -> Self {
        Reflection { channel, version: None }
    }

    pub(super) fn services(&mut self) -> Result<Vec<String>, Status> {
        match self.ask(About::Services(String::new()))? {
            Said::Services(list) => Ok(list.services.into_iter().map(|s| s.name).collect()),
            _ => Err(off_topic()),
        }
    }

    /// The file that defines a name, with all that it needs.
    pub(super) fn symbol(&mut self, name: &str) -> Result<DescriptorPool, Status> {
        let mut files = BTreeMap::new();
        let mut bytes = self.add(About::Symbol(name.to_owned()), &mut files)?;
        let mut asked = BTreeSet::new();
        loop {
            let missing = files
                .values()
                .flat_map(|file: &FileDescriptorProto| &file.dependency)
                .find(|name| !files.contains_key(*name) && !asked.contains(*name))
                .cloned();
            let Some(missing) = missing else { break };
            asked.insert(missing.clone());
            bytes += self.add(About::File(missing), &mut files)?;
            if files.len() > FILES_MAX || bytes > BYTES_MAX {
                let what = "the server has no end of definitions for one name";
                return Err(Status::new(Code::ResourceExhausted, what));
            }
        }
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_protos(files.into_values()).map_err(|error| {
            let what = format!("the server's definitions do not fit together: {error}");
            Status::new(Code::Internal, what)
        })?;
        Ok(pool)
    }

    /// Adds the files that answer a question, and tells how many bytes they are.
    fn add(
        &mut self,
        about: About,
        files: &mut BTreeMap<String, FileDescriptorProto>,
    ) -> Result<usize, Status> {
        let Said::Files(found) = self.ask(about)? else { return Err(off_topic()) };
        for bytes in &found.files {
            let file = FileDescriptorProto::decode(&bytes[..]).map_err(|error| {
                Status::new(Code::Internal, format!("the server sent no definitions: {error}"))
            })?;
            files.insert(file.name().to_owned(), file);
        }
        Ok(found.files.iter().map(Vec::len).sum())
    }

    fn ask(&mut self, about: About) -> Result<Said, Status> {
        let versions = match self.version {
            Some(version) => &[version][..],
            None => &["v1", "v1alpha"][..],
        };
        let mut refused = None;
        for version in versions {
            let path = format!("grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            let question = Question { about: Some(about.clone()) };
            match super::ask::<_, Answer>(&self.channel, &path, question) {
                Ok(answer) => {
                    self.version = Some(version);
                    return said(answer);
                }
                Err(status) if status.code() == Code::Unimplemented => refused = Some(status),
                Err(status) => return Err(status),
            }
        }
        let what = "the server does not tell about its services; use --protoset or --proto";
        Err(refused.map_or_else(off_topic, |_| Status::new(Code::Unimplemented, what)))
    }
}

fn said(answer: Answer) -> Result<Said, Status> {
    match answer.said {
        Some(Said::Error(error)) => {
            let code = Code::try_from(error.code).unwrap_or(Code::Unknown);
            Err(Status::new(code, error.message))
        }
        Some(said) => Ok(said),
        None => Err(off_topic()),
    }
}

fn off_topic() -> Status {
    Status::new(Code::Internal, "the server answered another question about its services")
}
