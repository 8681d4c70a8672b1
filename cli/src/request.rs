//! From the flags to one request.

use std::{io, sync::Arc};

use mimus::{
    Body, Method, Progress,
    blocking::{Client, RequestBuilder},
    multipart::{Form, Part},
};

use crate::{
    address,
    client::AUTO,
    exit::{Exit, Failure},
    fields::FieldFlags,
    flags::Flags,
    payload::{FormPart, JSON, PartContent, Payload, read_input},
    resume::Start,
};

/// Told how far an upload has come.
pub(crate) type Observer = Arc<dyn Fn(Progress) + Send + Sync>;

/// What makes up the requests of a run.
pub(crate) struct Recipe<'a> {
    pub(crate) flags: &'a Flags,
    pub(crate) fields: &'a FieldFlags,
    pub(crate) payload: &'a Payload,
    /// The method that was named.
    pub(crate) method: Option<&'a Method>,
}

impl Recipe<'_> {
    /// The URL to ask for, from the one that was given.
    pub(crate) fn url(&self, given: &str) -> Result<String, Failure> {
        let url = address::complete(given)?;
        if let (true, Payload::Data { bytes, .. }) = (self.flags.request.get, self.payload) {
            return Ok(address::with_query(&url, &String::from_utf8_lossy(bytes)));
        }
        let upload = self.flags.request.upload_file.as_deref();
        Ok(match upload.filter(|path| path.as_os_str() != "-").and_then(|path| path.file_name()) {
            Some(name) => address::with_file_name(&url, name.as_encoded_bytes()),
            None => url,
        })
    }

    /// Whether the payload is the body, and not the query.
    pub(crate) fn has_body(&self) -> bool {
        self.payload.is_some() && !self.flags.request.get
    }

    /// The method: the one that is named, else the one that fits.
    pub(crate) fn method(&self) -> Method {
        let named = self.flags.request.request.as_ref().or(self.method);
        match named {
            Some(method) => method.clone(),
            None if self.flags.request.head => Method::HEAD,
            None if self.flags.request.upload_file.is_some() => Method::PUT,
            None if self.has_body() => Method::POST,
            None => Method::GET,
        }
    }

    /// The request for `url`, from `start` on.
    ///
    /// # Errors
    /// When the URL is not valid, or what is to be sent cannot be read.
    pub(crate) fn request(
        &self,
        client: &Client,
        url: &str,
        start: &Start,
        observer: Observer,
    ) -> Result<RequestBuilder, Failure> {
        // Of what can be wrong with a request this is told by its own exit code.
        client
            .request(Method::GET, url)
            .build()
            .map_err(|e| Failure::new(Exit::Url, format!("{e:#}")))?;
        let mut request = client.request(self.method(), url);
        if let Some(kind) = self.flags.request.kind {
            request = request.kind(kind);
        }
        for (name, value) in self.fields.send() {
            request = request.header(name, value);
        }
        for (name, value) in self.derived_fields(start) {
            request = request.header(name, value);
        }
        if !self.has_body() {
            return Ok(request);
        }
        match self.payload {
            Payload::Form(parts) => {
                let form = form(parts)?;
                let media_type = form.content_type();
                let request = match self.fields.mention("content-type") {
                    true => request,
                    false => request.set_header("Content-Type", media_type.as_bytes()),
                };
                Ok(request.body(form.into_body().with_progress(observer)))
            }
            payload => Ok(request.body(body(payload)?.with_progress(observer))),
        }
    }

    /// The fields that other flags stand for, where -H does not say otherwise.
    pub(crate) fn derived_fields(&self, start: &Start) -> Vec<(&'static str, String)> {
        let flags = &self.flags.request;
        let mut fields = Vec::new();
        if let Some(first) = start.offset {
            fields.push(("Range", format!("bytes={first}-")));
            fields.extend(start.validator.iter().map(|tag| ("If-Range", tag.clone())));
        } else if let Some(range) = &flags.range {
            fields.push(("Range", format!("bytes={range}")));
        }
        let referer = flags.referer.as_deref().map(|r| r.strip_suffix(AUTO).unwrap_or(r));
        if let Some(referer) = referer.filter(|text| !text.is_empty()) {
            fields.push(("Referer", referer.to_owned()));
        }
        let cookies: Vec<&str> =
            self.flags.auth.cookie.iter().map(String::as_str).filter(|c| c.contains('=')).collect();
        if !cookies.is_empty() {
            fields.push(("Cookie", cookies.join("; ")));
        }
        let media_type = match self.payload {
            Payload::Data { media_type, .. } => Some(*media_type),
            Payload::File { media_type, .. } => *media_type,
            Payload::None | Payload::Stdin | Payload::Form(_) => None,
        };
        if media_type == Some(JSON) {
            fields.push(("Accept", JSON.to_owned()));
        }
        if let Some(media_type) = media_type.filter(|_| self.has_body()) {
            fields.push(("Content-Type", media_type.to_owned()));
        }
        fields.retain(|(name, _)| !self.fields.mention(name));
        fields
    }
}

fn body(payload: &Payload) -> Result<Body, Failure> {
    Ok(match payload {
        Payload::None | Payload::Form(_) => Body::empty(),
        Payload::Data { bytes, .. } => Body::from(bytes.clone()),
        Payload::File { path, .. } => {
            Body::file(path).map_err(|e| Failure::read(path.display(), &e))?
        }
        Payload::Stdin => Body::reader(io::stdin()),
    })
}

fn form(parts: &[FormPart]) -> Result<Form, Failure> {
    let mut form = Form::new();
    for part in parts {
        let mut made = match &part.content {
            PartContent::Text(text) => Part::text(text.clone()),
            PartContent::File(path) => {
                Part::file(path).map_err(|e| Failure::read(path.display(), &e))?
            }
            PartContent::Value(path) => Part::bytes(read_input(path)?),
            PartContent::Stdin => Part::new(Body::reader(io::stdin())).file_name("-"),
        };
        if let Some(name) = &part.file_name {
            made = made.file_name(name.clone());
        }
        if let Some(media_type) = &part.media_type {
            made = made.media_type(media_type).map_err(|_| {
                Failure::new(Exit::Usage, format!("-F: {media_type:?} cannot be a media type"))
            })?;
        }
        form = form.part(part.name.clone(), made);
    }
    Ok(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(words: &[&str], check: impl FnOnce(&Recipe<'_>) -> T) -> T {
        let words = ["mimus"].iter().chain(words);
        let flags = Flags::from_words(words).unwrap();
        let fields = FieldFlags::from_flags(&flags.request.header).unwrap();
        let payload = Payload::from_flags(&flags).unwrap();
        let method = flags.targets().unwrap().method;
        check(&Recipe {
            flags: &flags,
            fields: &fields,
            payload: &payload,
            method: method.as_ref(),
        })
    }

    #[test]
    fn the_method_fits_what_is_sent() {
        let table: [(&[&str], &str); 9] = [
            (&["u"], "GET"),
            (&["u", "-d", "a"], "POST"),
            (&["u", "-G", "-d", "a"], "GET"),
            (&["u", "-F", "a=b"], "POST"),
            (&["u", "-T", "-"], "PUT"),
            (&["u", "-I"], "HEAD"),
            (&["patch", "u", "-d", "a"], "PATCH"),
            (&["get", "u", "--json", "{}"], "GET"),
            (&["post", "u", "-X", "PURGE"], "PURGE"),
        ];
        for (words, method) in table {
            assert_eq!(with(words, |r| r.method()), method, "{words:?}");
        }
    }

    #[test]
    fn data_becomes_a_query_with_get() {
        let url = |words: &[&str]| with(words, |r| r.url("a/?x=1").unwrap());
        assert_eq!(url(&["u", "-G", "-d", "b=2", "-d", "c"]), "http://a/?x=1&b=2&c");
        assert_eq!(url(&["u", "-d", "b=2"]), "http://a/?x=1");
        assert_eq!(with(&["u", "-T", "d/f n"], |r| r.url("a").unwrap()), "http://a/f%20n");
    }

    #[test]
    fn a_field_of_the_user_is_the_only_one_of_its_name() {
        let names = |words: &[&str]| {
            with(words, |r| {
                r.derived_fields(&Start::default()).iter().map(|f| f.0).collect::<Vec<_>>()
            })
        };
        assert_eq!(names(&["u", "--json", "{}"]), ["Accept", "Content-Type"]);
        assert_eq!(names(&["u", "--json", "{}", "-H", "accept: a/b"]), ["Content-Type"]);
        assert_eq!(names(&["u", "-d", "x", "-H", "Content-Type:"]), [""; 0]);
        assert_eq!(
            names(&["u", "-b", "a=1", "-b", "file", "-e", "http://r/;auto"]),
            ["Referer", "Cookie"]
        );
        let start = Start { offset: Some(7), validator: None };
        let range = with(&["u", "-C", "-"], |r| r.derived_fields(&start));
        assert_eq!(range, [("Range", "bytes=7-".to_owned())]);
    }
}
