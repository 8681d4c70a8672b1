//! What a request is to a browser: its destination, mode and credentials in the terms of the fetch
//! standard, and who asks for it.

use http::Method;
use url::Url;

use super::schema::KINDS;
use crate::{policy::redirect::same_origin, request::Request, target::Target};

/// The mode of a request (fetch standard, section 2.2.5), where its kind leaves it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// `cors`: what `fetch()` does unless told otherwise.
    #[default]
    Cors,
    /// `no-cors`
    NoCors,
    /// `same-origin`
    SameOrigin,
}

impl Mode {
    /// As `Sec-Fetch-Mode` says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Cors => "cors",
            Mode::NoCors => "no-cors",
            Mode::SameOrigin => "same-origin",
        }
    }
}

/// Whether a request goes with the client's cookies (fetch standard, section 2.2.5). Fields that the
/// user gives go in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Credentials {
    /// Never.
    Omit,
    /// To the origin of the page that asks: what `fetch()` does unless told otherwise.
    #[default]
    SameOrigin,
    /// Always.
    Include,
}

/// What a request is to a browser. Order, values and rank of its fields follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A page for the window: the address bar, a bookmark, a link. What a GET is unless told otherwise.
    Navigate,
    /// A page for a frame.
    Iframe,
    /// A form that is sent by POST. What a POST of a form's content type is unless told otherwise.
    FormPost,
    /// `fetch()` of a script. What any other request is unless told otherwise.
    Fetch {
        /// Its mode.
        mode: Mode,
        /// Its credentials.
        credentials: Credentials,
    },
    /// `XMLHttpRequest` of a script.
    Xhr,
    /// A script that the page waits for.
    Script,
    /// A script that it does not wait for (`async`).
    AsyncScript,
    /// A style sheet.
    Style,
    /// An image.
    Image,
    /// The page's icon.
    Favicon,
    /// A font.
    Font,
    /// `navigator.sendBeacon()` of a script.
    Beacon,
    /// The question that goes before a CORS request that is not simple (fetch standard, section 4.9). The
    /// caller gives its method, OPTIONS, and `Access-Control-Request-*`.
    Preflight,
    /// The beginning of a WebSocket.
    WebSocket,
}

impl Kind {
    /// `fetch()` with nothing else said.
    pub const FETCH: Kind = Kind::Fetch { mode: Mode::Cors, credentials: Credentials::SameOrigin };

    /// How profile files name the kinds, in the order of [`index`](Self::index).
    pub(super) const NAMES: [&'static str; 14] = KINDS;

    /// One of each.
    pub(super) const ALL: [Kind; 14] = [
        Kind::Navigate,
        Kind::Iframe,
        Kind::FormPost,
        Kind::FETCH,
        Kind::Xhr,
        Kind::Script,
        Kind::AsyncScript,
        Kind::Style,
        Kind::Image,
        Kind::Favicon,
        Kind::Font,
        Kind::Beacon,
        Kind::Preflight,
        Kind::WebSocket,
    ];

    /// The kind of this name, as profile files have it: `navigate`, `fetch`, `async-script`...
    pub fn named(name: &str) -> Option<Kind> {
        Self::ALL.into_iter().find(|kind| Self::NAMES[kind.index()] == name)
    }

    pub(super) fn index(self) -> usize {
        match self {
            Kind::Navigate => 0,
            Kind::Iframe => 1,
            Kind::FormPost => 2,
            Kind::Fetch { .. } => 3,
            Kind::Xhr => 4,
            Kind::Script => 5,
            Kind::AsyncScript => 6,
            Kind::Style => 7,
            Kind::Image => 8,
            Kind::Favicon => 9,
            Kind::Font => 10,
            Kind::Beacon => 11,
            Kind::Preflight => 12,
            Kind::WebSocket => 13,
        }
    }

    /// What `request` is if nobody said it.
    fn of(request: &Request) -> Kind {
        let form = |request: &Request| {
            let content = request.fields.get("content-type").unwrap_or_default();
            content.starts_with(b"application/x-www-form-urlencoded")
                || content.starts_with(b"multipart/form-data")
        };
        match request.method {
            Method::GET => Kind::Navigate,
            Method::POST if form(request) => Kind::FormPost,
            _ => Kind::FETCH,
        }
    }

    /// Whether the browser shows the answer in a window or a frame.
    fn is_navigation(self) -> bool {
        matches!(self, Kind::Navigate | Kind::Iframe | Kind::FormPost)
    }

    /// Whether it can be asked for without a page that asks.
    fn needs_no_page(self) -> bool {
        self == Kind::Navigate
    }

    pub(super) fn mode(self) -> Mode {
        match self {
            Kind::Fetch { mode, .. } => mode,
            Kind::Script | Kind::AsyncScript | Kind::Style | Kind::Image => Mode::NoCors,
            Kind::Favicon | Kind::Beacon => Mode::NoCors,
            _ => Mode::Cors,
        }
    }

    /// Whether there are requests of this kind that carry no credentials.
    pub(super) fn may_omit_credentials(self) -> bool {
        self.credentials() != Credentials::Include
    }

    fn credentials(self) -> Credentials {
        match self {
            Kind::Fetch { credentials, .. } => credentials,
            Kind::Xhr | Kind::Font => Credentials::SameOrigin,
            Kind::Preflight => Credentials::Omit,
            _ => Credentials::Include,
        }
    }
}

/// How a request's target lies to the page that asks (`Sec-Fetch-Site`), the farthest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) enum Relation {
    #[default]
    SameOrigin,
    SameSite,
    CrossSite,
}

impl Relation {
    fn between(page: &Url, target: &Url) -> Relation {
        if same_origin(page, target) {
            return Relation::SameOrigin;
        }
        let same = page.scheme() == target.scheme()
            && match (page.domain(), target.domain()) {
                (Some(a), Some(b)) => {
                    a == b || registrable(a).is_some_and(|of_a| registrable(b) == Some(of_a))
                }
                _ => page.host_str() == target.host_str(),
            };
        if same { Relation::SameSite } else { Relation::CrossSite }
    }
}

/// The part of a name that somebody registered, by the Public Suffix List.
fn registrable(name: &str) -> Option<&str> {
    psl::domain_str(name.strip_suffix('.').unwrap_or(name))
}

/// What the user said of a request's place in a browser.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    pub(crate) kind: Option<Kind>,
    /// The page that asks.
    pub(crate) initiator: Option<Url>,
    /// Whether a human hand started it.
    pub(crate) by_user: Option<bool>,
    /// A WebSocket that may begin on a connection of other requests, because its own question left it behind.
    pub(crate) takes_left: bool,
    /// How far the targets lay that redirected here.
    farthest: Relation,
}

/// Who asks.
enum Page<'a> {
    /// Nobody: the browser itself.
    None,
    /// The root of the target's own origin.
    Own,
    At(std::borrow::Cow<'a, Url>),
}

/// A request as the rules of a profile see it.
pub(crate) struct Asked<'a> {
    pub(crate) kind: Kind,
    pub(crate) by_user: bool,
    page: Page<'a>,
    /// `None`: the browser itself asks.
    pub(crate) site: Option<Relation>,
    target: &'a Url,
    safe_method: bool,
}

impl<'a> Asked<'a> {
    /// `said` finds a field of the user's.
    pub(crate) fn new(request: &'a Request, said: impl Fn(&str) -> Option<&'a [u8]>) -> Self {
        let ask = request.ask.as_deref();
        let kind = kind_of(request);
        let target = &request.target.url;
        let named = |name| Url::parse(std::str::from_utf8(said(name)?).ok()?).ok();
        let page = match ask.and_then(|ask| ask.initiator.as_ref()) {
            Some(page) => Page::At(std::borrow::Cow::Borrowed(page)),
            None => match named("referer").or_else(|| named("origin")) {
                Some(page) => Page::At(std::borrow::Cow::Owned(page)),
                None if kind.needs_no_page() => Page::None,
                None => Page::Own,
            },
        };
        let farthest = ask.map(|ask| ask.farthest).unwrap_or_default();
        let site = match &page {
            Page::None => None,
            Page::Own => Some(farthest),
            Page::At(page) => Some(Relation::between(page, target).max(farthest)),
        };
        Asked {
            kind,
            by_user: ask.and_then(|ask| ask.by_user).unwrap_or(true),
            page,
            site,
            target,
            safe_method: matches!(request.method, Method::GET | Method::HEAD),
        }
    }

    /// Whether the client's cookies go with it.
    pub(crate) fn takes_cookies(&self) -> bool {
        match self.kind.credentials() {
            Credentials::Omit => false,
            Credentials::SameOrigin => matches!(self.site, None | Some(Relation::SameOrigin)),
            Credentials::Include => true,
        }
    }

    /// Whether it may carry client hints that the target's origin asked for: they are its own page's.
    pub(crate) fn takes_hints(&self) -> bool {
        self.kind == Kind::Navigate || self.site == Some(Relation::SameOrigin)
    }

    /// `Sec-Fetch-Site` (fetch metadata, section 2.3).
    pub(crate) fn site_name(&self) -> &'static str {
        match self.site {
            None => "none",
            Some(Relation::SameOrigin) => "same-origin",
            Some(Relation::SameSite) => "same-site",
            Some(Relation::CrossSite) => "cross-site",
        }
    }

    /// `Referer` by the policy that browsers have for pages that state none,
    /// `strict-origin-when-cross-origin`.
    pub(crate) fn referer(&self) -> Option<String> {
        let page = match &self.page {
            Page::None => return None,
            Page::Own => return Some(origin_of(self.target) + "/"),
            Page::At(page) => page,
        };
        let downgrade = page.scheme() == "https" && self.target.scheme() == "http";
        if downgrade {
            return None;
        }
        if !same_origin(page, self.target) {
            return Some(origin_of(page) + "/");
        }
        let path = &page[url::Position::BeforePath..url::Position::AfterQuery];
        Some(origin_of(page) + path)
    }

    /// `Origin`. Without `always`, where the fetch standard has it (section 3.2): to other origins that are
    /// asked by CORS, and with methods that may change something.
    pub(crate) fn origin(&self, always: bool) -> Option<String> {
        let crosses = self.site.is_some_and(|site| site > Relation::SameOrigin);
        let cors = !self.kind.is_navigation() && self.kind.mode() == Mode::Cors;
        if !always && self.safe_method && !(crosses && cors) {
            return None;
        }
        Some(match &self.page {
            Page::None => "null".to_owned(),
            Page::Own => origin_of(self.target),
            Page::At(page) => origin_of(page),
        })
    }
}

fn origin_of(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// What a request is: what its user says, else what it looks like.
pub(crate) fn kind_of(request: &Request) -> Kind {
    request.ask.as_ref().and_then(|ask| ask.kind).unwrap_or_else(|| Kind::of(request))
}

impl Ask {
    /// Takes note of a redirect, before the request has its new target.
    pub(crate) fn leave(request: &mut Request, to: &Target) {
        let asked = Asked::new(request, |name| request.fields.get(name));
        let kind = asked.kind;
        let mut farthest = asked.site.unwrap_or_default();
        // The page of a request that named none is that of its first target.
        let page = match asked.page {
            Page::Own => request.target.url.join("/").ok(),
            Page::None => None,
            Page::At(_) => None,
        };
        if let Some(page) = &page {
            farthest = farthest.max(Relation::between(page, &to.url));
        }
        let ask = request.ask.get_or_insert_default();
        ask.kind = Some(kind);
        ask.farthest = farthest;
        if ask.initiator.is_none() {
            ask.initiator = page;
        }
    }
}
