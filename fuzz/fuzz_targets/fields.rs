//! `Fields` behaves as a list of pairs, whatever is done to it.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::rig::pairs;
use mimus_fuzz::{Choices, fuzz};
use mimus_proto::Fields;

fuzz!("fields", |data| {
    let mut choices = Choices::new(data);
    let (mut fields, mut model) = (Fields::new(), Vec::<(String, Vec<u8>)>::new());
    while !choices.is_empty() {
        let (action, name, value) = (choices.byte(), choices.text(), choices.bytes());
        let same = |other: &str| other.eq_ignore_ascii_case(&name);
        let place = model.iter().position(|(other, _)| same(other));
        let pair = (name.clone(), trimmed(value).to_vec());
        match action % 5 {
            0 if fields.append(&name, value).is_ok() => model.push(pair),
            1 if fields.insert(usize::from(action), &name, value).is_ok() => {
                model.insert(usize::from(action).min(model.len()), pair);
            }
            2 if fields.set(&name, value).is_ok() => {
                let at = place.unwrap_or(model.len());
                model.retain(|(other, _)| !same(other));
                model.insert(at, pair);
            }
            3 => {
                let before = model.len();
                model.retain(|(other, _)| !same(other));
                assert_eq!(fields.remove(&name), before - model.len());
            }
            _ => fields = fields.clone(),
        }
        assert_eq!(pairs(&fields), model);
        assert_eq!(fields.get(&name).is_some(), model.iter().any(|(other, _)| same(other)));
        let listed: usize = fields.list(&name).map(<[u8]>::len).sum();
        assert!(listed <= fields.get_all(&name).map(<[u8]>::len).sum());
    }
    let map = fields.to_header_map().expect("what is valid here is valid there");
    assert_eq!(map.len(), model.len());
});

fn trimmed(value: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let start = value.iter().position(|b| !blank(b)).unwrap_or(value.len());
    let end = value.iter().rposition(|b| !blank(b)).map_or(start, |last| last + 1);
    &value[start..end]
}
