//! `Fields` against a plain list of pairs.

mod rig;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use mimus_proto::{Fields, InvalidField};
use proptest::collection::vec;
use proptest::prelude::*;
use rig::{fields, pairs};

#[derive(Debug, Clone)]
enum Change {
    Append(String, String),
    Insert(usize, String, String),
    InsertBefore(String, String, String),
    Set(String, String),
    Remove(String),
    RetainShort(usize),
    ExtendSelf,
    Clone,
}

fn change() -> impl Strategy<Value = Change> {
    use Change as C;
    let name = || "[abAB]{1,2}";
    let value = || prop_oneof![3 => "[!-~]{0,6}", 1 => "[!-~]{1500,2500}"];
    prop_oneof![
        4 => (name(), value()).prop_map(|(n, v)| C::Append(n, v)),
        2 => (0_usize..6, name(), value()).prop_map(|(i, n, v)| C::Insert(i, n, v)),
        2 => (name(), name(), value()).prop_map(|(b, n, v)| C::InsertBefore(b, n, v)),
        4 => (name(), value()).prop_map(|(n, v)| C::Set(n, v)),
        2 => name().prop_map(C::Remove),
        1 => (0_usize..8).prop_map(C::RetainShort),
        1 => Just(C::ExtendSelf),
        1 => Just(C::Clone),
    ]
}

type Model = Vec<(String, Vec<u8>)>;

fn first(model: &Model, name: &str) -> Option<usize> {
    model.iter().position(|(other, _)| other.eq_ignore_ascii_case(name))
}

fn apply(change: &Change, model: &mut Model) {
    let pair = |name: &String, value: &String| (name.clone(), value.clone().into_bytes());
    match change {
        Change::Append(name, value) => model.push(pair(name, value)),
        Change::Insert(at, name, value) => model.insert((*at).min(model.len()), pair(name, value)),
        Change::InsertBefore(before, name, value) => {
            let at = first(model, before).unwrap_or(model.len());
            model.insert(at, pair(name, value));
        }
        Change::Set(name, value) => match first(model, name) {
            None => model.push(pair(name, value)),
            Some(at) => {
                model[at] = pair(name, value);
                let mut index = 0;
                model.retain(|(other, _)| {
                    index += 1;
                    index <= at + 1 || !other.eq_ignore_ascii_case(name)
                });
            }
        },
        Change::Remove(name) => model.retain(|(other, _)| !other.eq_ignore_ascii_case(name)),
        Change::RetainShort(max) => model.retain(|(_, value)| value.len() <= *max),
        Change::ExtendSelf => model.extend(model.clone()),
        Change::Clone => {}
    }
}

fn apply_to_fields(change: &Change, fields: &mut Fields) -> Result<(), InvalidField> {
    match change {
        Change::Append(name, value) => fields.append(name, value),
        Change::Insert(at, name, value) => fields.insert(*at, name, value),
        Change::InsertBefore(before, name, value) => fields.insert_before(before, name, value),
        Change::Set(name, value) => fields.set(name, value),
        Change::Remove(name) => {
            let there = fields.get_all(name).count();
            assert_eq!(fields.remove(name), there);
            Ok(())
        }
        Change::RetainShort(max) => {
            fields.retain(|_, value| value.len() <= *max);
            Ok(())
        }
        Change::ExtendSelf => {
            let copy = fields.clone();
            fields.extend(&copy)
        }
        Change::Clone => {
            let copy = fields.clone();
            assert_eq!(copy, *fields);
            *fields = copy;
            Ok(())
        }
    }
}

proptest! {
    #[test]
    fn every_change_does_what_it_does_to_a_list_of_pairs(changes in vec(change(), 0..30)) {
        let (mut model, mut fields) = (Model::new(), Fields::new());
        for change in &changes {
            if matches!(change, Change::ExtendSelf) && model.len() > 200 {
                continue;
            }
            apply(change, &mut model);
            apply_to_fields(change, &mut fields).expect("valid");
            prop_assert_eq!(&pairs(&fields), &model);
        }
        for name in ["a", "B", "ab", "none"] {
            let value = first(&model, name).map(|at| &model[at].1[..]);
            prop_assert_eq!(fields.get(name), value);
            prop_assert_eq!(fields.contains(name), value.is_some());
            let same = |(other, _): &&(String, Vec<u8>)| other.eq_ignore_ascii_case(name);
            let all: Vec<&[u8]> = model.iter().filter(same).map(|(_, value)| &value[..]).collect();
            prop_assert_eq!(fields.get_all(name).collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn what_is_taken_is_exactly_what_the_ecosystem_takes(name in vec(any::<u8>(), 0..6), value in vec(any::<u8>(), 0..12)) {
        let Ok(name) = String::from_utf8(name) else { return Ok(()) };
        let ours = Fields::new().append(&name, &value);
        let theirs_name = HeaderName::from_bytes(name.as_bytes()).is_ok();
        let theirs_value = HeaderValue::from_bytes(&value).is_ok();
        prop_assert_eq!(ours.is_ok(), theirs_name && theirs_value);
    }
}

#[test]
fn a_field_that_could_split_a_message_is_refused() {
    let mut list = fields([("A", "b")]);
    for name in ["", "a b", "a:", "a\r\n", "\u{e9}", "a\0", "(a)"] {
        assert_eq!(list.append(name, "x"), Err(InvalidField::Name), "{name:?}");
    }
    for value in ["a\r\nb", "a\nb", "a\rb", "\0", "a\x7f", "\x0b"] {
        assert_eq!(list.set("A", value), Err(InvalidField::Value), "{value:?}");
    }
    assert_eq!(list, fields([("A", "b")]));
}

#[test]
fn whitespace_around_a_value_is_dropped() {
    assert_eq!(fields([("A", " \t b c\t ")]).get_str("a"), Some("b c"));
}

#[test]
fn list_elements_are_split_outside_quotes_and_across_duplicates() {
    let list = fields([("Accept", "a, b;q=\"x,\\\"y\" ,, "), ("X", "no"), ("ACCEPT", ",c")]);
    let elements: Vec<&[u8]> = list.list("accept").collect();
    assert_eq!(elements, [&b"a"[..], b"b;q=\"x,\\\"y\"", b"c"]);
    assert_eq!(fields([("A", "\"open, quote")]).list("a").count(), 1);
}

#[test]
fn debug_shows_no_credentials() {
    let secrets = ["Authorization", "proxy-authorization", "COOKIE", "Set-Cookie"];
    let mut list = fields([("Accept", "visible")]);
    for name in secrets {
        list.append(name, "s3cret").expect("valid");
    }
    let text = format!("{list:?}");
    assert!(!text.contains("s3cret"), "{text}");
    assert!(text.contains("Accept: visible") && text.contains("COOKIE: <redacted>"), "{text}");
}

#[test]
fn maps_keep_every_value() {
    let list = fields([("B", "1"), ("a", "2"), ("b", "3")]);
    let map = list.to_header_map().expect("small");
    assert_eq!(map.get_all("b").iter().collect::<Vec<_>>(), ["1", "3"]);
    let back = Fields::from(&map);
    assert_eq!(back.len(), 3);
    assert_eq!(back.get_all("B").collect::<Vec<_>>(), [b"1", b"3"]);
    let pairs = map.into_iter().filter_map(|(name, value)| Some((name?, value)));
    assert_eq!(pairs.collect::<Fields>().get_str("a"), Some("2"));
    assert!(Fields::from(&HeaderMap::new()).is_empty());
}

#[test]
fn a_list_changed_for_ever_stays_small() {
    let mut list = fields([("A", "x")]);
    for round in 0..100_000 {
        list.set("Cookie", format!("n={round}")).expect("valid");
    }
    assert_eq!(list.get_str("cookie"), Some("n=99999"));
    assert!(list.text_capacity() < 64 * 1024, "{}", list.text_capacity());
}
