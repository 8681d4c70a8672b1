//! How HTTP/2 opened, and what stood in requests, from what was seen of connections.

use mimus_proto::{
    fingerprint::{Frame, HeaderBlock},
    h2::hpack::{Form, NameForm},
};
use toml::{Table, Value};

use super::{Notes, order, pages};
use crate::{
    fingerprint::Seen,
    profile::{
        Profile,
        schema::{File, KindData},
    },
};

/// What an opening says, as a profile's file has it, with `hpack` and what else cannot be told as in `near`.
pub(super) fn opening(seen: &[Seen], near: &Profile, notes: &mut Notes) -> Option<Table> {
    let blocks = || seen.iter().flat_map(|seen| blocks(&seen.frames));
    let mut openings = seen.iter().filter_map(|seen| opening_of(&seen.frames));
    let first = openings.next()?;
    if openings.any(|other| other != first) {
        notes.add("http2: connections open in different ways; the first is taken");
    }
    let Opened { settings, window, stream_window, first_stream, pseudo, exclusive } = first;
    let mut table = match near.0.table.get("http2") {
        Some(Value::Table(table)) => table.clone(),
        _ => Table::new(),
    };
    let pair = |(id, value): (u16, u32)| Value::Array(vec![number(id.into()), number(value)]);
    let pairs = settings.into_iter().map(pair).collect();
    table.insert("settings".to_owned(), Value::Array(pairs));
    table.insert("window_increment".to_owned(), number(window));
    // Nothing and zero are the same, and most files say nothing.
    if stream_window > 0 || table.contains_key("stream_window_increment") {
        table.insert("stream_window_increment".to_owned(), number(stream_window));
    }
    table.insert("first_stream".to_owned(), number(first_stream));
    let pseudo = pseudo.into_iter().map(Value::String).collect();
    table.insert("pseudo".to_owned(), Value::Array(pseudo));
    let on_others = blocks().any(|block| block.priority.is_some_and(|said| said.depends_on != 0));
    priority(&mut table, exclusive, on_others, notes);
    if let Some(Value::Table(hpack)) = table.get_mut("hpack") {
        forms(hpack, blocks());
    }
    notes.inherited("http2.hpack.rules and table, split_cookies, coalesce");
    Some(table)
}

fn number(value: u32) -> Value {
    Value::Integer(value.into())
}

fn blocks(frames: &[Frame]) -> impl Iterator<Item = &HeaderBlock> {
    frames.iter().filter_map(|frame| match frame {
        Frame::Headers(block) => Some(block),
        _ => None,
    })
}

/// How a connection opened.
#[derive(Debug, PartialEq, Eq)]
struct Opened {
    settings: Vec<(u16, u32)>,
    window: u32,
    stream_window: u32,
    first_stream: u32,
    pseudo: Vec<String>,
    /// None: HEADERS say nothing of priorities.
    exclusive: Option<bool>,
}

/// None: nothing was asked for on it.
fn opening_of(frames: &[Frame]) -> Option<Opened> {
    let at = frames.iter().position(|frame| matches!(frame, Frame::Headers(_)))?;
    let (before, from) = frames.split_at_checked(at)?;
    let block = blocks(from).next()?;
    let settings = before.iter().find_map(|frame| match frame {
        Frame::Settings { ack: false, settings } => Some(settings),
        _ => None,
    });
    let window = before.iter().find_map(|frame| match frame {
        Frame::WindowUpdate { stream: 0, increment } => Some(*increment),
        _ => None,
    });
    let stream_window = match from.get(1) {
        Some(Frame::WindowUpdate { stream, increment }) if *stream == block.stream => *increment,
        _ => 0,
    };
    let names = block.fields.iter().map(|field| String::from_utf8_lossy(&field.name));
    let pseudo = names.filter_map(|name| Some(name.strip_prefix(':')?.to_owned())).collect();
    Some(Opened {
        settings: settings?.iter().map(|(id, value)| (id.0, *value)).collect(),
        window: window.unwrap_or_default(),
        stream_window,
        first_stream: block.stream,
        pseudo,
        exclusive: block.priority.map(|priority| priority.exclusive),
    })
}

fn priority(table: &mut Table, exclusive: Option<bool>, on_others: bool, notes: &mut Notes) {
    let Some(exclusive) = exclusive else {
        table.remove("priority");
        return;
    };
    let near = table.get("priority").and_then(|near| near.get("depends_on")).cloned();
    let depends_on = match near {
        _ if on_others => Value::String("last-open".to_owned()),
        Some(near) => {
            if near.as_str() == Some("last-open") {
                notes.inherited("http2.priority.depends_on: no two requests were open at once");
            }
            near
        }
        None => Value::String("root".to_owned()),
    };
    let mut priority = Table::new();
    priority.insert("exclusive".to_owned(), Value::Boolean(exclusive));
    priority.insert("depends_on".to_owned(), depends_on);
    table.insert("priority".to_owned(), Value::Table(priority));
}

/// What literals show: of which entry they take the name, and whether all of them are Huffman-coded.
fn forms<'a>(hpack: &mut Table, blocks: impl Iterator<Item = &'a HeaderBlock>) {
    for field in blocks.flat_map(|block| &block.fields) {
        let Form::Literal { name, huffman, .. } = field.form else { continue };
        if !huffman && !field.value.is_empty() {
            hpack.insert("huffman".to_owned(), Value::String("shorter".to_owned()));
        }
        // RFC 7541 appendix A: the names that stand there twice.
        let which = match name {
            NameForm::Index(2 | 4 | 6) => "first",
            NameForm::Index(3 | 5 | 7) => "last",
            _ => continue,
        };
        hpack.insert("names".to_owned(), Value::String(which.to_owned()));
    }
}

/// A request of one of the pages.
#[derive(Debug)]
pub(super) struct Request {
    kind: &'static str,
    http2: bool,
    /// Names in lower case, and values.
    fields: Vec<(String, String)>,
    /// Names as they are spelt, each once.
    names: Vec<String>,
    /// As in a file: from 1 to 256.
    weight: Option<u16>,
}

impl Request {
    pub(super) fn is_http2(&self) -> bool {
        self.http2
    }

    /// The names of its fields as they are spelt, each once.
    pub(super) fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(its, _)| its == name).map(|(_, value)| value.as_str())
    }
}

/// Requests of the pages over TLS, HTTP/2 before HTTP/1.1.
pub(super) fn requests(seen: &[Seen]) -> Vec<Request> {
    let over_http2 = seen.iter().flat_map(|seen| blocks(&seen.frames)).filter_map(|block| {
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let all = block.fields.iter().map(|field| (said(&field.name), said(&field.value)));
        let (pseudo, fields): (Vec<_>, Vec<_>) = all.partition(|(name, _)| name.starts_with(':'));
        let path = pseudo.iter().find(|(name, _)| name == ":path")?;
        let kind = pages::kind(&path.1)?;
        let weight = block.priority.map(|priority| u16::from(priority.weight) + 1);
        let names = each_once(fields.iter().map(|(name, _)| name.clone()));
        Some(Request { kind, http2: true, fields, names, weight })
    });
    let secure = seen.iter().filter(|seen| seen.hello.is_some());
    let over_http1 = secure.flat_map(|seen| &seen.heads).filter_map(|head| {
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = head.fields.iter().map(|(name, value)| (name.to_lowercase(), said(value)));
        let kind = pages::kind(&head.target)?;
        let names = each_once(head.fields.iter().map(|(name, _)| name.to_owned()));
        Some(Request { kind, http2: false, fields: fields.collect(), names, weight: None })
    });
    over_http2.chain(over_http1).collect()
}

/// A name comes twice where Cookie is split.
fn each_once(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut once = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

/// Fields that are the same in each request of a browser.
const EVERYWHERE: [&str; 6] = [
    "user-agent",
    "accept-language",
    "accept-encoding",
    "sec-ch-ua",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
];

/// Fields that each kind of request has a value of its own for.
const BY_KIND: [&str; 2] = ["accept", "priority"];

/// What a browser without a window calls itself.
const HEADLESS: &str = "HeadlessChrome";

/// The user agent, as it is with a window.
pub(super) fn user_agent(requests: &[Request]) -> Option<String> {
    let said = requests.iter().find_map(|request| request.value("user-agent"))?;
    Some(said.replace(HEADLESS, "Chrome"))
}

/// The brands, when they were told.
pub(super) fn brands(requests: &[Request]) -> Option<&str> {
    requests.iter().find_map(|request| request.value("sec-ch-ua"))
}

/// What `[values]` says otherwise than `near`.
pub(super) fn values(requests: &[Request], near: &File, notes: &mut Notes) -> Table {
    let mut table = Table::new();
    let page = requests.iter().find(|request| request.kind == "navigate");
    let Some(page) = page else {
        notes.inherited("values: no page was asked for");
        return table;
    };
    for name in EVERYWHERE {
        let Some(value) = page.value(name) else { continue };
        let mut value = value.to_owned();
        if value.contains(HEADLESS) {
            if name == "sec-ch-ua" {
                notes.inherited("values.sec-ch-ua: a headless browser's has a brand of its own");
                continue;
            }
            value = value.replace(HEADLESS, "Chrome");
            notes.add(&format!("values.{name}: said to be that of a browser with a window"));
        }
        if near.values.get(name) != Some(&value) {
            table.insert(name.to_owned(), Value::String(value));
        }
    }
    table
}

/// What `[kinds]` says otherwise than `near`: nothing, or of each kind what may be its own, because some are
/// like others. With priorities in HEADERS a kind that did not come takes the page's weight where `near` has
/// none, and the order of one that came and has the same in `near`.
pub(super) fn kinds(requests: &[Request], near: &File, notes: &mut Notes) -> Table {
    let weight_of_page = requests.iter().find_map(|request| request.weight);
    let came = |kind: &str| -> Vec<&Request> {
        requests.iter().filter(|request| request.kind == kind).collect()
    };
    let orders: Vec<(&KindData, Option<Vec<String>>)> = (near.kinds.iter())
        .map(|(kind, data)| (kind, data, came(kind)))
        .filter(|(_, _, came)| !came.is_empty())
        .map(|(kind, data, came)| {
            let order = order::of(&came, data, near);
            if order.is_some() {
                notes.add(&format!("kinds.{kind}.order is what came, and not the nearest's"));
            }
            (data, order)
        })
        .collect();
    let reordered = orders.iter().any(|(_, order)| order.is_some());
    let (mut kinds, mut differs, mut unseen) = (Table::new(), reordered, Vec::new());
    for (kind, data) in &near.kinds {
        let of_kind = came(kind);
        if of_kind.is_empty() {
            unseen.push(kind.as_str());
        }
        let mut own = Table::new();
        let weight = of_kind.iter().find_map(|request| request.weight);
        let weight = weight.or(data.weight).or(weight_of_page);
        differs |= weight != data.weight;
        if let Some(weight) = weight {
            own.insert("weight".to_owned(), number(weight.into()));
        }
        let values = values_of(&of_kind, data, near, notes);
        differs |=
            values.iter().any(|(name, value)| value.as_str() != Some(said_of(name, data, near)));
        own.insert("values".to_owned(), Value::Table(values));
        if reordered {
            let alike = |(other, _): &&(&KindData, _)| std::ptr::eq(*other, data);
            let equal = |(other, _): &&(&KindData, _)| other.order == data.order;
            let same = orders.iter().find(alike).or_else(|| orders.iter().find(equal));
            let order = same.and_then(|(_, order)| order.as_ref()).unwrap_or(&data.order);
            let order = order.iter().cloned().map(Value::String).collect();
            own.insert("order".to_owned(), Value::Array(order));
        }
        kinds.insert(kind.clone(), Value::Table(own));
    }
    if reordered {
        notes.inherited("kinds: the places of fields that did not come, and orders in the clear");
    }
    if !unseen.is_empty() {
        notes.inherited(&format!("kinds that did not come: {}", unseen.join(", ")));
    }
    if differs { kinds } else { Table::new() }
}

/// What a file says of a field of a kind; nothing where a rule finds it.
fn said_of<'a>(name: &str, data: &'a KindData, near: &'a File) -> &'a str {
    data.values.get(name).or(near.values.get(name)).map_or("", String::as_str)
}

/// The values of a kind that may be its own.
fn values_of(of_kind: &[&Request], data: &KindData, near: &File, notes: &mut Notes) -> Table {
    // HTTP/2 says what HTTP/1.1 may leave out.
    let over_http2 = of_kind.iter().find(|request| request.http2);
    let mut values = Table::new();
    let says = |name: &&str| data.order.iter().any(|entry| entry_name(entry) == *name);
    for name in BY_KIND.into_iter().filter(says) {
        let known = said_of(name, data, near);
        let value = over_http2.map_or(known, |seen| seen.value(name).unwrap_or_default());
        values.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    for (name, value) in of_kind.iter().flat_map(|request| &request.fields) {
        let listed = EVERYWHERE.contains(&&**name) || BY_KIND.contains(&&**name);
        let known = said_of(name, data, near);
        if listed || order::is_ruled(name) || known == value || known.starts_with('@') {
            continue;
        }
        if of_kind.iter().any(|other| other.value(name).is_some_and(|its| its != value)) {
            notes.lost(&format!("{name} of some requests: it varies"));
            continue;
        }
        values.insert(name.clone(), Value::String(value.clone()));
    }
    values
}

/// The name of an entry of an order, in lower case.
fn entry_name(entry: &str) -> String {
    entry.rsplit(':').next().unwrap_or_default().to_lowercase()
}
