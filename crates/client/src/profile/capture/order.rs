//! The order and spelling of a kind's fields, from the requests of it that came.
//!
//! An order of the nearest profile that fits what came stays: it knows of places that nothing showed. Where it
//! does not fit, the order is that of what came, over HTTP/1.1 and HTTP/2, and what did not come stands behind
//! the entry that it stands behind in the nearest.

use super::http::Request;
use crate::profile::schema::{File, KindData};

/// Fields whose values rules find: whether they are there depends on the request.
const RULED: [&str; 8] = [
    "host",
    "content-length",
    "transfer-encoding",
    "cookie",
    "referer",
    "origin",
    "sec-fetch-site",
    "sec-fetch-user",
];

/// Whether a field's value depends on the request.
pub(super) fn is_ruled(name: &str) -> bool {
    RULED.contains(&name) || name.starts_with("sec-websocket-")
}

/// What both versions of HTTP showed of one kind; none of a version that was not used.
struct Shown {
    http1: Option<Vec<String>>,
    http2: Option<Vec<String>>,
}

/// The order of a kind, where it is not that of the nearest.
pub(super) fn of(requests: &[&Request], data: &KindData, near: &File) -> Option<Vec<String>> {
    let names = |http2: bool| {
        let of_version = requests.iter().filter(|request| request.is_http2() == http2);
        of_version.map(|request| request.names()).reduce(joined)
    };
    let shown = Shown { http1: names(false), http2: names(true) };
    let says = |name: &str| text_of(name, data, near).is_some();
    let fits = |names: &Option<Vec<String>>, http2: bool| {
        names.as_ref().is_none_or(|names| fits(names, &data.order, http2, says))
    };
    if fits(&shown.http1, false) && fits(&shown.http2, true) {
        return None;
    }
    let mut order = shown.merged(
        |name| {
            let entry = data.order.iter().find(|entry| bare(entry).eq_ignore_ascii_case(name));
            entry.map_or_else(|| spelt(name), |entry| bare(entry).to_owned())
        },
        says,
        data,
    );
    shown.add_unseen(&mut order, data, says);
    Some(order)
}

/// What a file says of a field in a secure place, unless a rule finds it.
fn text_of<'a>(name: &str, data: &'a KindData, near: &'a File) -> Option<&'a str> {
    let lower = name.to_ascii_lowercase();
    let text = data.values.get(&lower).or_else(|| near.values.get(&lower))?;
    Some(text.as_str()).filter(|text| !text.is_empty() && !text.starts_with('@'))
}

/// The name in an entry of an order.
fn bare(entry: &str) -> &str {
    entry.rsplit(':').next().unwrap_or_default()
}

/// Whether an entry is one of this version, and a browser's own field.
fn is_own(entry: &str, http2: bool) -> bool {
    let other = if http2 { "h1:" } else { "h2:" };
    entry != "*" && !entry.starts_with("user:") && !entry.starts_with(other)
}

/// Whether fields came as an order has them: none elsewhere, none that is not there, and none left out that
/// always says the same. HTTP/2 has no spelling.
fn fits(names: &[String], order: &[String], http2: bool, says: impl Fn(&str) -> bool) -> bool {
    let same = |one: &str, other: &str| match http2 {
        true => one.eq_ignore_ascii_case(other),
        false => one == other,
    };
    let own = || order.iter().filter(|entry| is_own(entry, http2)).map(|entry| bare(entry));
    let mut entries = own();
    names.iter().all(|name| entries.any(|entry| same(entry, name)))
        && own().filter(|entry| says(entry)).all(|entry| names.iter().any(|name| same(entry, name)))
}

/// Both lists in one: what the second has besides stands behind what it stands behind there. What contradicts
/// the first stays where that has it.
fn joined(mut first: Vec<String>, second: Vec<String>) -> Vec<String> {
    let mut at = 0;
    for name in second {
        match first.iter().position(|known| *known == name) {
            Some(known) => at = at.max(known + 1),
            None => {
                first.insert(at, name);
                at += 1;
            }
        }
    }
    first
}

impl Shown {
    /// One order of what both versions showed: what only one of them has, or has there, is said to be its own.
    fn merged(
        &self,
        spelling: impl Fn(&str) -> String,
        says: impl Fn(&str) -> bool,
        data: &KindData,
    ) -> Vec<String> {
        let (one, two) = match (&self.http1, &self.http2) {
            (Some(one), Some(two)) => (one, two),
            (Some(one), None) => return one.clone(),
            (None, Some(two)) => return two.iter().map(|name| spelling(name)).collect(),
            (None, None) => return Vec::new(),
        };
        // A field that rules may leave out is no version's own because it came in one alone.
        let open = |name: &str| {
            let known = data.order.iter().any(|entry| entry.eq_ignore_ascii_case(name));
            is_ruled(&name.to_ascii_lowercase()) || known && !says(name)
        };
        let in_both = |name: &str, other: &[String]| {
            other.iter().any(|known| known.eq_ignore_ascii_case(name))
        };
        let own = |version: &str, name: &str, spelt: String, other: &[String]| match open(name)
            && !in_both(name, other)
        {
            true => spelt,
            false => format!("{version}:{spelt}"),
        };
        let mut order = Vec::new();
        let (mut i, mut j) = (0, 0);
        for (of_one, of_two) in common(one, two) {
            for name in &one[i..of_one] {
                order.push(own("h1", name, name.clone(), two));
            }
            for name in &two[j..of_two] {
                order.push(own("h2", name, spelling(name), one));
            }
            // Behind the last pair there is none.
            if let Some(name) = one.get(of_one) {
                order.push(name.clone());
            }
            (i, j) = (of_one + 1, of_two + 1);
        }
        order
    }

    /// Adds the nearest's entries that nothing was seen of: places, and what is said in a version that was not
    /// used.
    fn add_unseen(&self, order: &mut Vec<String>, data: &KindData, says: impl Fn(&str) -> bool) {
        let mut at = 0;
        for entry in &data.order {
            let own = is_own(entry, false) || is_own(entry, true);
            let place = order.iter().position(|known| match own {
                true => {
                    !known.starts_with("user:") && bare(known).eq_ignore_ascii_case(bare(entry))
                }
                false => known == entry,
            });
            if let Some(place) = place {
                at = place + 1;
                continue;
            }
            let would_show =
                |names: &Option<Vec<String>>, http2| names.is_some() && own && is_own(entry, http2);
            let would_show = would_show(&self.http1, false) || would_show(&self.http2, true);
            if would_show && says(bare(entry)) {
                continue;
            }
            order.insert(at, entry.clone());
            at += 1;
        }
    }
}

/// The longest common subsequence of two lists of names, as pairs of places; behind it the ends of both.
fn common(one: &[String], two: &[String]) -> Vec<(usize, usize)> {
    let same = |i: usize, j: usize| one[i].eq_ignore_ascii_case(&two[j]);
    // How much the rests of both have in common, from the end.
    let mut lengths = vec![vec![0_usize; two.len() + 1]; one.len() + 1];
    for i in (0..one.len()).rev() {
        for j in (0..two.len()).rev() {
            lengths[i][j] = match same(i, j) {
                true => lengths[i + 1][j + 1] + 1,
                false => lengths[i + 1][j].max(lengths[i][j + 1]),
            };
        }
    }
    let (mut pairs, mut i, mut j) = (Vec::new(), 0, 0);
    while i < one.len() && j < two.len() {
        if same(i, j) {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if lengths[i + 1][j] >= lengths[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs.push((one.len(), two.len()));
    pairs
}

/// As browsers spell a field over HTTP/1.1 that nothing showed there.
fn spelt(name: &str) -> String {
    if name.starts_with("sec-ch-") {
        return name.to_owned();
    }
    let mut begins = true;
    let letter = |letter: char| {
        let spelt = if begins { letter.to_ascii_uppercase() } else { letter };
        begins = letter == '-';
        spelt
    };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn data(order: &str) -> KindData {
        KindData { weight: None, order: list(order), plain_order: None, values: Default::default() }
    }

    /// Fields in capitals have rules or none; these always say the same.
    fn says(name: &str) -> bool {
        name.starts_with(|first: char| first.is_ascii_lowercase())
    }

    fn derived(http1: Option<&str>, http2: Option<&str>, near: &str) -> String {
        let shown = Shown { http1: http1.map(list), http2: http2.map(list) };
        let near = data(near);
        let mut order = shown.merged(str::to_owned, says, &near);
        shown.add_unseen(&mut order, &near, says);
        order.join(" ")
    }

    #[test]
    fn lists_of_one_version_are_joined() {
        let joined = |one, two| joined(list(one), list(two)).join(" ");
        assert_eq!(joined("a b d", "a c d e"), "a c b d e");
        assert_eq!(joined("a b", "b a c"), "a b c");
        assert_eq!(joined("", "x y"), "x y");
    }

    #[test]
    fn both_versions_make_one_order() {
        assert_eq!(derived(Some("a b c"), Some("a b c"), ""), "a b c");
        assert_eq!(derived(Some("a k c"), Some("a c p"), ""), "a h1:k c h2:p");
        // One that moves stands twice.
        assert_eq!(derived(Some("a b c"), Some("b c a"), ""), "h1:a b c h2:a");
        assert_eq!(derived(Some("a b"), None, ""), "a b");
    }

    #[test]
    fn what_did_not_come_stands_behind_what_it_stood_behind() {
        let near = "H Auth a * user:b b Cookie h2:p";
        assert_eq!(derived(Some("H b a"), Some("b a p"), near), "H Auth b Cookie a * user:b h2:p");
        // What is always said, and was not, is gone; of a version that nobody used it stays.
        assert_eq!(derived(Some("H b"), None, near), "H Auth * user:b b Cookie h2:p");
        // What a rule may leave out belongs to no version.
        assert_eq!(derived(Some("a Cookie b"), Some("b a"), "a Cookie b"), "h1:a Cookie b h2:a");
    }

    #[test]
    fn an_order_fits_by_names_spelling_and_what_is_left_out() {
        let order = list("Host h1:x * user:y a y h2:p");
        let fits = |names: &str, http2| fits(&list(names), &order, http2, says);
        assert!(fits("Host x a y", false) && fits("host a Y p", true));
        assert!(!fits("Host X a y", false), "spelt otherwise");
        assert!(!fits("Host x y a", false) && !fits("a y p x", true));
        assert!(!fits("Host x a", false) && !fits("a y", true), "left out");
        assert!(!fits("Host x a new y", false));
    }

    #[test]
    fn names_are_spelt_as_browsers_do() {
        assert_eq!((&*spelt("sec-gpc"), &*spelt("sec-ch-ua-x")), ("Sec-Gpc", "sec-ch-ua-x"));
    }
}
