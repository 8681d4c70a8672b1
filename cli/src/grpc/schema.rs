//! Definitions of services and messages: from files, or from the server.

use mimus::grpc::{Channel, Status};
use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};

use super::{read, reflection::Reflection};
use crate::{
    exit::{Exit, Failure},
    flags::grpc::SchemaFlags,
};

/// Where definitions come from.
pub(super) enum Schema {
    Files(DescriptorPool),
    Server(Reflection),
}

impl Schema {
    /// The definitions in the files that the flags name, else those of the server.
    pub(super) fn open(flags: &SchemaFlags, channel: Option<&Channel>) -> Result<Self, Failure> {
        if !flags.protoset.is_empty() {
            return from_sets(flags).map(Schema::Files);
        }
        if !flags.proto.is_empty() {
            return from_sources(flags).map(Schema::Files);
        }
        match channel {
            Some(channel) => Ok(Schema::Server(Reflection::new(channel.clone()))),
            None => {
                Err(Failure::new(Exit::Usage, "without a URL, --protoset or --proto is needed"))
            }
        }
    }

    /// The full names of all services.
    pub(super) fn services(&mut self) -> Result<Vec<String>, Failure> {
        match self {
            Schema::Files(pool) => {
                Ok(pool.services().map(|service| service.full_name().to_owned()).collect())
            }
            Schema::Server(server) => server.services().map_err(|status| untold(&status)),
        }
    }

    /// Definitions among which is that of `name`, if there is one.
    pub(super) fn pool(&mut self, name: &str) -> Result<DescriptorPool, Failure> {
        match self {
            Schema::Files(pool) => Ok(pool.clone()),
            Schema::Server(server) => server.symbol(name).map_err(|status| untold(&status)),
        }
    }

    pub(super) fn service(&mut self, name: &str) -> Result<ServiceDescriptor, Failure> {
        let found = self.pool(name)?.get_service_by_name(name);
        found.ok_or_else(|| Failure::new(Exit::Usage, format!("there is no service {name:?}")))
    }

    pub(super) fn method(
        &mut self,
        service: &str,
        name: &str,
    ) -> Result<MethodDescriptor, Failure> {
        let found = self.service(service)?.methods().find(|method| method.name() == name);
        let none = || format!("the service {service:?} has no method {name:?}");
        found.ok_or_else(|| Failure::new(Exit::Usage, none()))
    }
}

/// Why the server did not tell what it was asked.
fn untold(status: &Status) -> Failure {
    use std::error::Error as _;
    let transport = status.source().and_then(|cause| cause.downcast_ref::<mimus::Error>());
    match transport {
        Some(error) => Failure::of(error, false),
        None => Failure::new(Exit::of_grpc(status.code()), format!("{status:#}")),
    }
}

fn from_sets(flags: &SchemaFlags) -> Result<DescriptorPool, Failure> {
    let mut pool = DescriptorPool::new();
    for path in &flags.protoset {
        let bytes = read(path)?;
        pool.decode_file_descriptor_set(&bytes[..]).map_err(|error| {
            let what = format!("{} is no descriptor set: {error}", path.display());
            Failure::new(Exit::Read, what)
        })?;
    }
    Ok(pool)
}

fn from_sources(flags: &SchemaFlags) -> Result<DescriptorPool, Failure> {
    let mut folders = flags.import_path.clone();
    if folders.is_empty() {
        folders.push(".".into());
        // A file elsewhere is taken from where it lies.
        folders.extend(flags.proto.iter().filter_map(|path| Some(path.parent()?.to_owned())));
    }
    let wrong = |error: protox::Error| {
        Failure::new(Exit::Read, format!("the definitions cannot be read: {error:?}"))
    };
    let mut compiler = protox::Compiler::new(folders).map_err(wrong)?;
    compiler.include_imports(true);
    compiler.open_files(&flags.proto).map_err(wrong)?;
    Ok(compiler.descriptor_pool())
}
