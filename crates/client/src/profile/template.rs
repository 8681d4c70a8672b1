//! The fields of one kind of request as a list of slots, made once and filled for each request.

use std::sync::atomic::{AtomicBool, Ordering};

use mimus_proto::{BodyLength, Fields, InvalidField};
use smallvec::SmallVec;

use super::{
    error::Error,
    hints::HintSet,
    kind::{Asked, Kind},
    schema::{File, KindData},
};

/// How a request goes: what decides, besides its kind, which fields there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// The target is potentially trustworthy (secure contexts, section 3.1).
    pub(crate) secure: bool,
    pub(crate) http2: bool,
}

impl Way {
    pub(super) const ALL: [Way; 4] = [
        Way { secure: false, http2: false },
        Way { secure: false, http2: true },
        Way { secure: true, http2: false },
        Way { secure: true, http2: true },
    ];

    pub(super) fn index(self) -> usize {
        usize::from(self.secure) * 2 + usize::from(self.http2)
    }
}

/// The fields of one kind of request, sent one way.
#[derive(Debug, Default)]
pub(crate) struct Template {
    slots: Vec<Slot>,
    /// Names whose place is elsewhere when the field is the user's.
    moved: Vec<Box<str>>,
    /// A field of the user's contradicted it, and somebody was told.
    warned: AtomicBool,
}

#[derive(Debug)]
enum Slot {
    /// Fields that always say the same.
    Fixed(Fields),
    /// A field that says what a rule finds.
    Ruled(Box<str>, Rule),
    /// Here stands the user's field of this name, if there is one.
    Place(Box<str>),
    /// Here stand those of the user's fields that have no place elsewhere.
    Custom,
}

/// Where the value of a field comes from.
#[derive(Debug, Clone)]
enum Rule {
    Host,
    Length,
    Cookie,
    Referer,
    Origin {
        always: bool,
    },
    Site,
    Mode,
    User,
    /// Not of a part of a body: that of the whole is of no use to who wants it.
    Codings(Box<str>),
    Hint(HintSet, Box<str>),
}

/// What a request has to say.
pub(crate) struct Said<'a> {
    /// The user's fields, then what stands in for them: of a name that an earlier list has, none of a
    /// later one counts.
    pub(crate) lists: [&'a Fields; 3],
    /// Which of the client's defaults, the second list, go with this exchange.
    pub(crate) default_goes: &'a dyn Fn(&[u8]) -> bool,
    pub(crate) host: &'a Fields,
    /// The client's cookies, not yet asked whether they go.
    pub(crate) cookies: Option<&'a [u8]>,
    pub(crate) length: BodyLength,
    pub(crate) hints: HintSet,
}

impl<'a> Said<'a> {
    fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.lists.into_iter().enumerate().flat_map(move |(at, list)| {
            list.iter().filter(move |(name, _)| {
                let earlier = self.lists[..at].iter().any(|list| list.contains(name));
                !earlier && (at != 1 || (self.default_goes)(name.as_bytes()))
            })
        })
    }

    fn all(&self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The user's field of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter().find(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Whether the user says one of these fields.
    fn any_of(&self, fields: &Fields) -> bool {
        self.iter().any(|(name, _)| fields.contains(name))
    }
}

impl Template {
    /// The template of a kind.
    pub(super) fn of(file: &File, kind: Kind, way: Way) -> Result<Template, Error> {
        let name = Kind::NAMES[kind.index()];
        let Some(data) = file.kinds.get(name) else {
            return Err(Error::invalid(&file.name, format!("the kind {name:?} is missing")));
        };
        let unfit = |e: InvalidField| Error::invalid(&file.name, format!("kind {name:?}: {e}"));
        let mut template = Template::default();
        let own_order = data.plain_order.as_deref().filter(|_| !way.secure);
        for entry in own_order.unwrap_or(&data.order) {
            let Some(field) = entry_for(entry, way) else { continue };
            let lower = field.to_ascii_lowercase();
            if !way.secure && own_order.is_none() && is_for_secure(&lower) {
                continue;
            }
            match (field, field.strip_prefix("user:")) {
                ("*", _) => template.slots.push(Slot::Custom),
                (_, Some(name)) => {
                    template.slots.push(Slot::Place(name.into()));
                    template.moved.push(name.into());
                }
                _ => template.add(field, &lower, value(file, data, &lower, way)).map_err(unfit)?,
            }
        }
        if !template.slots.iter().any(|slot| matches!(slot, Slot::Custom)) {
            template.slots.push(Slot::Custom);
        }
        Ok(template)
    }

    fn add(&mut self, field: &str, lower: &str, value: Value<'_>) -> Result<(), InvalidField> {
        let slot = match value {
            Value::Text(value) if lower == "accept-encoding" => {
                Slot::Ruled(field.into(), Rule::Codings(value.into()))
            }
            Value::Text(value) => {
                if !matches!(self.slots.last(), Some(Slot::Fixed(_))) {
                    self.slots.push(Slot::Fixed(Fields::new()));
                }
                if let Some(Slot::Fixed(run)) = self.slots.last_mut() {
                    run.append(field, value)?;
                }
                return Ok(());
            }
            Value::Ruled(rule) => Slot::Ruled(field.into(), rule),
            Value::None => Slot::Place(field.into()),
        };
        self.slots.push(slot);
        Ok(())
    }

    /// Appends the fields of a request.
    pub(crate) fn fill(
        &self,
        to: &mut Fields,
        said: &Said<'_>,
        asked: &Asked<'_>,
    ) -> Result<(), InvalidField> {
        for slot in &self.slots {
            match slot {
                Slot::Fixed(run) if !said.any_of(run) => to.extend(run)?,
                Slot::Fixed(run) => {
                    for (name, value) in run.iter() {
                        let elsewhere = self.moved.iter().any(|its| its.eq_ignore_ascii_case(name));
                        if elsewhere && said.get(name).is_some() {
                            continue;
                        }
                        if !self.place(to, said, name, Some(value))? {
                            to.append(name, value)?;
                        }
                    }
                }
                Slot::Ruled(name, rule) => {
                    let users = said.get(name);
                    if users.is_some_and(|users| rule.is_contradicted(users, asked)) {
                        self.warn(name);
                    }
                    rule.write(to, name, users, said, asked)?;
                }
                Slot::Place(name) => {
                    self.place(to, said, name, None)?;
                }
                Slot::Custom => {
                    for (name, value) in said.iter().filter(|(name, _)| !self.places(name)) {
                        to.append(name, value)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes what the user says under a name, if anything, spelt as the browser spells it.
    fn place(
        &self,
        to: &mut Fields,
        said: &Said<'_>,
        name: &str,
        instead_of: Option<&[u8]>,
    ) -> Result<bool, InvalidField> {
        let mut any = false;
        for value in said.iter().filter(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, v)| v) {
            to.append(name, value)?;
            any = true;
            if instead_of.is_some_and(|browsers| browsers != value) && tells_the_browser(name) {
                self.warn(name);
            }
        }
        Ok(any)
    }

    fn warn(&self, name: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(field = name, "a field contradicts the profile");
        }
    }

    /// Whether this name has a place of its own.
    fn places(&self, name: &str) -> bool {
        self.slots.iter().any(|slot| match slot {
            Slot::Fixed(run) => run.contains(name),
            Slot::Ruled(_, Rule::Length) => {
                name.eq_ignore_ascii_case("content-length")
                    || name.eq_ignore_ascii_case("transfer-encoding")
            }
            Slot::Ruled(its, _) | Slot::Place(its) => its.eq_ignore_ascii_case(name),
            Slot::Custom => false,
        })
    }
}

impl Rule {
    /// Whether the user says something else than the browser would, in a field that tells who it is.
    fn is_contradicted(&self, users: &[u8], asked: &Asked<'_>) -> bool {
        match self {
            Rule::Site => users != asked.site_name().as_bytes(),
            Rule::Mode => users != asked.kind.mode().as_str().as_bytes(),
            Rule::User => users != b"?1" || !asked.by_user,
            Rule::Hint(_, value) => users != value.as_bytes(),
            _ => false,
        }
    }

    fn write(
        &self,
        to: &mut Fields,
        name: &str,
        users: Option<&[u8]>,
        said: &Said<'_>,
        asked: &Asked<'_>,
    ) -> Result<(), InvalidField> {
        match self {
            Rule::Cookie => return write_cookies(to, name, said, asked),
            Rule::Length => return write_length(to, name, said),
            _ => {}
        }
        if let Some(users) = users {
            return to.append(name, users);
        }
        match self {
            Rule::Host => to.extend(said.host),
            Rule::Referer => append(to, name, asked.referer().as_deref()),
            Rule::Origin { always } => append(to, name, asked.origin(*always).as_deref()),
            Rule::Site => to.append(name, asked.site_name()),
            Rule::Mode => to.append(name, asked.kind.mode().as_str()),
            Rule::User => append(to, name, asked.by_user.then_some("?1")),
            Rule::Codings(_) if said.get("range").is_some() => to.append(name, "identity"),
            Rule::Codings(codings) => to.append(name, codings.as_bytes()),
            Rule::Hint(hint, value) => {
                let wanted = said.hints.has(*hint) && asked.takes_hints();
                append(to, name, wanted.then_some(value))
            }
            Rule::Cookie | Rule::Length => Ok(()),
        }
    }
}

fn append(to: &mut Fields, name: &str, value: Option<&str>) -> Result<(), InvalidField> {
    value.map_or(Ok(()), |value| to.append(name, value))
}

/// The user's cookies and the client's, as one field (RFC 6265 section 5.4).
fn write_cookies(
    to: &mut Fields,
    name: &str,
    said: &Said<'_>,
    asked: &Asked<'_>,
) -> Result<(), InvalidField> {
    let kept = said.cookies.filter(|_| asked.takes_cookies());
    let all: SmallVec<[&[u8]; 2]> = said.all("cookie").chain(kept).collect();
    match all[..] {
        [] => Ok(()),
        [one] => to.append(name, one),
        _ => to.append(name, all.join(&b"; "[..])),
    }
}

/// What frames the body (RFC 9112 section 6), unless the user wrote a field that does.
fn write_length(to: &mut Fields, name: &str, said: &Said<'_>) -> Result<(), InvalidField> {
    let mut framed = false;
    for name in ["Content-Length", "Transfer-Encoding"] {
        for value in said.all(name) {
            to.append(name, value)?;
            framed = true;
        }
    }
    match said.length {
        BodyLength::None => Ok(()),
        _ if framed => Ok(()),
        BodyLength::Known(length) => to.append(name, length.to_string()),
        BodyLength::Chunked => to.append("Transfer-Encoding", "chunked"),
    }
}

/// The value of a field in a file.
enum Value<'a> {
    Text(&'a str),
    Ruled(Rule),
    None,
}

fn value<'a>(file: &'a File, data: &'a KindData, lower: &str, way: Way) -> Value<'a> {
    if let Some(hint) = HintSet::named(lower) {
        return match file.client_hints.get(lower) {
            Some(value) => Value::Ruled(Rule::Hint(hint, value.as_str().into())),
            None => Value::None,
        };
    }
    let plain = if way.secure { None } else { file.plain.get(lower) };
    let text = data.values.get(lower).or(plain).or_else(|| file.values.get(lower));
    let rule = match (lower, text.map(String::as_str)) {
        ("host", None) => Rule::Host,
        ("content-length", None) => Rule::Length,
        ("cookie", None) => Rule::Cookie,
        ("referer", None) => Rule::Referer,
        ("origin", None) => Rule::Origin { always: false },
        ("origin", Some("@always")) => Rule::Origin { always: true },
        ("sec-fetch-site", None) => Rule::Site,
        ("sec-fetch-mode", Some("@mode")) => Rule::Mode,
        ("sec-fetch-user", None) => Rule::User,
        (_, None | Some("")) => return Value::None,
        (_, Some(text)) => return Value::Text(text),
    };
    Value::Ruled(rule)
}

/// The name in an entry of an order, if it is for this way.
fn entry_for(entry: &str, way: Way) -> Option<&str> {
    match entry.split_once(':') {
        Some(("h1", name)) => (!way.http2).then_some(name),
        Some(("h2", name)) => way.http2.then_some(name),
        _ => Some(entry),
    }
}

/// What is not sent to who could be anybody (fetch metadata, section 2; client hints infrastructure).
fn is_for_secure(name: &str) -> bool {
    let begins =
        |with: &str| name.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with));
    begins("sec-fetch-") || begins("sec-ch-")
}

/// Whether a field of this name tells which browser it is, so that another value contradicts the rest.
fn tells_the_browser(name: &str) -> bool {
    let is = |its: &&str| name.eq_ignore_ascii_case(its);
    ["user-agent", "te", "connection"].iter().any(is) || is_for_secure(name)
}
