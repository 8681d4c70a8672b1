//! Where calls go, and what they have in common.

use std::{fmt, sync::Arc};

use http::Method as HttpMethod;
use mimus_proto::{
    Fields,
    grpc::{self, InvalidMetadata, Metadata},
};

use super::{Code, Codec, DEFAULT_MAX_MESSAGE, Method, Result, Status, coding, upload::Framing};
use crate::{
    Body, Client, IntoUrl, RequestBuilder, blocking,
    client::Inner,
    options::{Settings, shared_setters},
    redirect,
    request::Request,
    target::Target,
};

/// A client, an origin, and what calls to it have in common.
///
/// Cheap to clone; clones share the client's connections. A channel opens nothing by itself, and has no
/// state to lose: when a connection fails, the next call makes another.
///
/// What is set here is the default of every [`Method`] made from it, which has the same setters. Of the
/// client's own settings all hold but these: no redirect is followed, no content coding is asked for,
/// there is no limit to the time until the head comes or between two messages, and where the client has
/// no version of HTTP set it is HTTP/2, over plain text too.
#[derive(Clone)]
#[must_use = "a channel does nothing by itself"]
pub struct Channel {
    pub(super) client: Arc<Inner>,
    pub(super) target: Target,
    pub(super) options: Options,
}

/// What a call can be told.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) settings: Arc<Settings>,
    pub(super) metadata: Metadata,
    pub(super) framing: Framing,
    pub(super) max_receive: usize,
    /// The first mistake made while setting, which every call answers with.
    pub(super) fault: Option<Arc<str>>,
}

impl Options {
    fn new(settings: Arc<Settings>) -> Self {
        Options {
            settings,
            metadata: Metadata::new(),
            framing: Framing { coding: None, limit: None },
            max_receive: DEFAULT_MAX_MESSAGE,
            fault: None,
        }
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        add: impl FnOnce(&mut Metadata) -> Result<(), InvalidMetadata>,
    ) {
        if let Err(error) = add(&mut self.metadata) {
            self.fault.get_or_insert_with(|| format!("the metadata {name:?}: {error}").into());
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match &self.fault {
            Some(fault) => Err(Status::new(Code::Internal, &**fault)),
            None => Ok(()),
        }
    }
}

/// The setters that a channel and a method share. `self.options_mut()` must give a
/// `&mut Options`.
macro_rules! call_setters {
    () => {
        /// Adds text to the metadata that is sent, beside what is there of this name.
        pub fn metadata(mut self, name: &str, value: &str) -> Self {
            self.options_mut().add(name, |all| all.append(name, value));
            self
        }

        /// Adds bytes, under a name that ends in `-bin`.
        pub fn metadata_bin(mut self, name: &str, value: &[u8]) -> Self {
            self.options_mut().add(name, |all| all.append_bin(name, value));
            self
        }

        /// Adds all of `metadata`.
        pub fn metadata_all(mut self, metadata: &mimus_proto::grpc::Metadata) -> Self {
            self.options_mut().add("of another list", |all| all.extend(metadata));
            self
        }

        /// Compresses the messages that are sent, [`Coding::Gzip`](crate::Coding::Gzip) being what
        /// servers know. The default is not to. What is received may be compressed anyway.
        pub fn send_compressed(mut self, coding: impl Into<Option<$crate::Coding>>) -> Self {
            self.options_mut().framing.coding = coding.into();
            self
        }

        /// The most bytes of a received message, both as it comes and unfolded. 4 MiB by default; a
        /// longer one fails the call with `RESOURCE_EXHAUSTED`.
        pub fn max_receive(mut self, bytes: usize) -> Self {
            self.options_mut().max_receive = bytes;
            self
        }

        /// The most bytes of a message that is sent, before it is compressed. No limit by default.
        pub fn max_send(mut self, bytes: impl Into<Option<usize>>) -> Self {
            self.options_mut().framing.limit = bytes.into();
            self
        }

        fn settings_mut(&mut self) -> &mut $crate::options::Settings {
            std::sync::Arc::make_mut(&mut self.options_mut().settings)
        }
    };
}
pub(super) use call_setters;

impl Channel {
    call_setters!();
    shared_setters!();

    fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    fn new<M>(client: &Arc<Inner>, origin: impl IntoUrl) -> crate::Result<Self> {
        let builder = RequestBuilder::<M>::new(client.clone(), HttpMethod::POST, origin);
        let mut request = builder.redirect(redirect::Policy::none()).decode(None).build()?;
        let settings = Arc::make_mut(&mut request.settings);
        // A call may take as long as its deadline, and a stream may be silent for as long.
        settings.timeouts.head = None;
        settings.timeouts.idle = None;
        settings.timeouts.write = None;
        settings.version.get_or_insert(http::Version::HTTP_2);
        let options = Options::new(request.settings);
        Ok(Channel { client: client.clone(), target: request.target, options })
    }

    /// The method at `path`, `package.Service/Method`, with messages as `codec` has them.
    pub fn method<C: Codec>(&self, path: &str, codec: C) -> Method<C> {
        let mut channel = self.clone();
        let found = channel.target.change(|url| {
            let base = url.path().trim_end_matches('/');
            let path = format!("{base}/{}", path.trim_start_matches('/'));
            url.set_path(&path);
            url.set_query(None);
            url.set_fragment(None);
            Ok(())
        });
        if let Err(error) = found {
            channel.options.fault.get_or_insert_with(|| error.to_string().into());
        }
        Method::new(channel, codec)
    }

    /// A request with these fields.
    pub(super) fn request(&self, fields: Fields, body: Body) -> Request {
        let (target, settings) = (self.target.clone(), self.options.settings.clone());
        Request {
            method: HttpMethod::POST,
            target,
            fields,
            body,
            protocol: None,
            server_wide: false,
            settings,
            ask: None,
        }
    }

    /// What the protocol wants in a request's head, and the caller's metadata.
    pub(super) fn head(&self, subtype: &str) -> Result<Fields> {
        self.options.check()?;
        self.fields(subtype)
            .map_err(|error| Status::new(Code::Internal, "a field is not valid").caused_by(error))
    }

    fn fields(&self, subtype: &str) -> Result<Fields, mimus_proto::InvalidField> {
        let metadata = self.options.metadata.fields();
        let mut fields = Fields::with_capacity(metadata.len() + 5, metadata.text_len() + 160);
        // The protocol: `te` is how a server finds out about proxies that drop trailers.
        fields.append("te", "trailers")?;
        fields.append("content-type", format!("{}+{subtype}", grpc::CONTENT_TYPE))?;
        fields.append("grpc-accept-encoding", coding::accepted())?;
        if let Some(coding) = self.options.framing.coding {
            fields.append("grpc-encoding", coding.token())?;
        }
        if let Some(total) = self.options.settings.timeouts.total {
            fields.append("grpc-timeout", grpc::encode_timeout(total))?;
        }
        fields.extend(metadata)?;
        Ok(fields)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = crate::error::without_secrets(&self.target.url);
        f.debug_struct("Channel").field("url", &url.as_str()).finish_non_exhaustive()
    }
}

impl Client {
    /// Where gRPC calls to an origin start. A path in the URL is put in front of the methods'.
    ///
    /// # Errors
    /// When the URL is not one that can be requested.
    pub fn grpc(&self, origin: impl IntoUrl) -> crate::Result<Channel> {
        Channel::new::<crate::Async>(&self.inner, origin)
    }
}

impl blocking::Client {
    /// Where gRPC calls to an origin start. A path in the URL is put in front of the methods'.
    ///
    /// Calls are futures here too. They never wait for anything but the calling thread, so
    /// [`rt::Blocking::block_on`](crate::rt::Blocking::block_on) completes them.
    ///
    /// # Errors
    /// When the URL is not one that can be requested.
    pub fn grpc(&self, origin: impl IntoUrl) -> crate::Result<Channel> {
        Channel::new::<crate::Blocking>(&self.inner, origin)
    }
}
