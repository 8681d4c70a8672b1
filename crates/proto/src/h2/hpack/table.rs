//! The dynamic table (RFC 7541 sections 2.3.2 and 4).

use std::collections::VecDeque;

/// What an entry counts beyond its name and value (RFC 7541 section 4.1).
const ENTRY_EXTRA: usize = 32;

/// Dead text below this is never moved over: the copy costs more than the room.
const COMPACT_FROM: usize = 512;

/// Fields in the order they came, oldest evicted first. An entry is known by its age: the newest is 0.
///
/// The text of all entries lies in one arena, a name and its value side by side. What is evicted
/// leaves dead text at the front; once that is as long as the live text, the latter is moved there.
/// So the table does not allocate once it was full, and each byte is copied once more at most.
///
/// `T` is what the owner keeps with each entry.
#[derive(Debug)]
pub(super) struct Table<T> {
    entries: VecDeque<Entry<T>>,
    text: Vec<u8>,
    /// Where the arena begins in the stream of all text there ever was.
    base: u64,
    size: usize,
    max_size: usize,
}

/// Where one field lies in the arena.
#[derive(Debug)]
pub(super) struct Entry<T> {
    /// In the stream of all text.
    start: u64,
    name_len: u32,
    value_len: u32,
    /// What the owner keeps with it.
    pub(super) extra: T,
}

/// The name of a field to be inserted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'a> {
    Text(&'a [u8]),
    /// That of the entry of this age, which may be evicted by the insertion (section 4.4).
    OfEntry(usize),
}

/// What a field counts (RFC 7541 section 4.1).
pub(super) fn size_of(name_len: usize, value_len: usize) -> usize {
    name_len.saturating_add(value_len).saturating_add(ENTRY_EXTRA)
}

impl<T> Table<T> {
    /// An empty table. Does not allocate.
    pub(super) fn new(max_size: u32) -> Self {
        Self {
            entries: VecDeque::new(),
            text: Vec::new(),
            base: 0,
            size: 0,
            max_size: max_size as usize,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// As RFC 7541 section 4.1 counts.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn max_size(&self) -> usize {
        self.max_size
    }

    /// RFC 7541 section 4.3.
    pub(super) fn set_max_size(&mut self, max_size: usize) {
        self.max_size = max_size;
        self.evict();
    }

    /// The name and value of the entry of this age.
    #[inline]
    pub(super) fn get(&self, age: usize) -> Option<(&[u8], &[u8])> {
        Some(self.text_of(self.entries.get(age)?))
    }

    /// The entry of this age.
    #[inline]
    pub(super) fn entry(&self, age: usize) -> Option<&Entry<T>> {
        self.entries.get(age)
    }

    /// The name and value of an entry of this table.
    #[inline]
    pub(super) fn text_of(&self, entry: &Entry<T>) -> (&[u8], &[u8]) {
        let name = self.name_range(entry);
        let value = name.end..name.end + entry.value_len as usize;
        (&self.text[name], &self.text[value])
    }

    fn name_range(&self, entry: &Entry<T>) -> std::ops::Range<usize> {
        let start = (entry.start - self.base) as usize;
        start..start + entry.name_len as usize
    }

    /// Adds a field as the newest, evicting what has no place beside it. One that is larger than the
    /// table empties it, and is not added (RFC 7541 section 4.4).
    pub(super) fn insert(&mut self, name: Name<'_>, value: &[u8], extra: T) {
        let named = match name {
            Name::Text(text) => Some((text.len(), 0..0)),
            Name::OfEntry(age) => self.entries.get(age).map(|entry| {
                let range = self.name_range(entry);
                (range.len(), range)
            }),
        };
        let Some((name_len, copied)) = named else {
            return;
        };
        let size = size_of(name_len, value.len());
        if size > self.max_size {
            self.clear();
            return;
        }
        let start = self.base + self.text.len() as u64;
        match name {
            Name::Text(text) => self.text.extend_from_slice(text),
            Name::OfEntry(_) => self.text.extend_from_within(copied),
        }
        self.text.extend_from_slice(value);
        // The size is at most `max_size`, which was a `u32`.
        let (name_len, value_len) = (name_len as u32, value.len() as u32);
        self.entries.push_front(Entry { start, name_len, value_len, extra });
        self.size += size;
        self.evict();
    }

    fn evict(&mut self) {
        while self.size > self.max_size
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= size_of(oldest.name_len as usize, oldest.value_len as usize);
        }
        match self.entries.back() {
            None => self.clear(),
            Some(oldest) => {
                let dead = (oldest.start - self.base) as usize;
                if dead >= COMPACT_FROM && dead >= self.text.len() - dead {
                    self.base = oldest.start;
                    self.text.drain(..dead);
                }
            }
        }
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.text.clear();
        self.size = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &Table<()>) -> Vec<String> {
        let entry = |age| table.get(age).expect("below the length").0;
        (0..table.len()).map(|age| String::from_utf8_lossy(entry(age)).into_owned()).collect()
    }

    #[test]
    fn the_oldest_makes_room_for_the_newest() {
        let mut table = Table::new(3 * 34);
        for name in [b"a", b"b", b"c", b"d"] {
            table.insert(Name::Text(name), b"1", ());
        }
        assert_eq!(names(&table), ["d", "c", "b"]);
        assert_eq!(table.size(), 3 * 34);
        table.set_max_size(2 * 34 - 1);
        assert_eq!(names(&table), ["d"]);
        table.set_max_size(1000);
        assert_eq!(names(&table), ["d"]);
    }

    /// RFC 7541 section 4.4.
    #[test]
    fn a_name_may_be_that_of_the_entry_it_evicts() {
        let mut table = Table::new(40);
        table.insert(Name::Text(b"name"), b"1", ());
        table.insert(Name::OfEntry(0), b"2222", ());
        assert_eq!(table.get(0), Some((&b"name"[..], &b"2222"[..])));
        assert_eq!(table.len(), 1);
        table.insert(Name::OfEntry(0), b"22222", ());
        assert_eq!((table.len(), table.size(), table.text.len()), (0, 0, 0));
        table.insert(Name::OfEntry(0), b"", ());
        assert_eq!(table.len(), 0);
    }

    /// Many times the size of the table, and past what 32 bits count.
    #[test]
    fn text_stays_right_and_bounded() {
        let mut table = Table::new(4096);
        table.base = u64::from(u32::MAX) - 20_000;
        let field = |number: usize| (format!("name-{number}"), "v".repeat(number % 97));
        for number in 0..5000 {
            let (name, value) = field(number);
            table.insert(Name::Text(name.as_bytes()), value.as_bytes(), ());
            for age in 0..table.len() {
                let (name, value) = field(number - age);
                assert_eq!(table.get(age), Some((name.as_bytes(), value.as_bytes())));
            }
        }
        assert!(table.text.capacity() <= 4 * 4096, "{}", table.text.capacity());
    }
}
