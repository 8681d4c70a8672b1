//! Header blocks out.

use super::hash::hash;
use super::table::{Name, Table, size_of};
use super::{
    DEFAULT_TABLE_SIZE, Huffman, Indexing, NameIndex, SizeUpdates, huffman, integer, static_table,
};

/// The largest table that an [`Encoder`] keeps unless told otherwise, in bytes, whatever the peer
/// allows it: a peer may allow 4 GiB.
pub const DEFAULT_TABLE_CAP: u32 = 4096;

/// No entry: never younger than the oldest one.
const NO_ID: u32 = u32::MAX;

/// Encodes the header blocks of one direction of a connection, in their order.
#[derive(Debug)]
pub struct Encoder {
    table: Table<Links>,
    finder: Finder,
    /// What we keep at most.
    cap: u32,
    /// What the peer allows at most.
    allowed: u32,
    /// The smallest size the table had since the last block.
    lowest: u32,
    /// The size of the peer's table: what the last update said.
    signalled: u32,
    /// That what is allowed went down since the last block, which asks for an update.
    lowered: bool,
    /// That the peer said anything of it since the last block.
    told: bool,
    updates: SizeUpdates,
    names: NameIndex,
}

/// What is kept with each entry of the table to find it by.
#[derive(Debug)]
struct Links {
    hash: u32,
    /// The next older entries in the same buckets.
    older: [u32; 2],
}

/// Finds entries by hash. An entry's id is the number of insertions before it. A bucket knows the id
/// of its newest entry, and each entry the next older one; an id whose entry was evicted ends the
/// chain, so evicting needs no upkeep.
#[derive(Debug)]
struct Finder {
    /// For each bucket, the newest by name and value, and the newest by name.
    newest: Box<[[u32; 2]]>,
    inserted: u32,
}

const BY_FIELD: usize = 0;
const BY_NAME: usize = 1;

impl Encoder {
    /// An encoder for a connection whose peer sent `max_size` as its SETTINGS_HEADER_TABLE_SIZE, in
    /// bytes as RFC 7541 section 4.1 counts; [`DEFAULT_TABLE_SIZE`] before the peer's SETTINGS came.
    /// Its table has up to [`DEFAULT_TABLE_CAP`] bytes.
    #[must_use]
    pub fn new(max_size: u32) -> Self {
        Self::with_cap(max_size, DEFAULT_TABLE_CAP)
    }

    /// An encoder whose table has up to `cap` bytes, where the peer allows as many. It takes about twice
    /// that much memory, once so much was sent.
    #[must_use]
    pub fn with_cap(max_size: u32, cap: u32) -> Self {
        let mut encoder = Self {
            table: Table::new(DEFAULT_TABLE_SIZE),
            finder: Finder::new(cap),
            cap,
            allowed: DEFAULT_TABLE_SIZE,
            lowest: DEFAULT_TABLE_SIZE,
            signalled: DEFAULT_TABLE_SIZE,
            lowered: false,
            told: false,
            updates: SizeUpdates::default(),
            names: NameIndex::First,
        };
        encoder.set_max_size(max_size);
        encoder.told = max_size != DEFAULT_TABLE_SIZE;
        encoder
    }

    /// The same, with another choice of entries for names.
    #[must_use]
    pub fn with_names(mut self, names: NameIndex) -> Self {
        self.names = names;
        self
    }

    /// The same, with another choice of when a size is said, before anything is.
    #[must_use]
    pub fn with_updates(mut self, updates: SizeUpdates) -> Self {
        self.updates = updates;
        if self.told {
            self.lowest = self.allowed.min(self.cap);
        }
        self
    }

    /// Heeds a new SETTINGS_HEADER_TABLE_SIZE of the peer. The update is written at the head of the
    /// next block.
    pub fn set_max_size(&mut self, size: u32) {
        let capped = size.min(self.cap);
        self.lowered |= size < self.allowed;
        self.lowest = match self.updates {
            SizeUpdates::Always if !self.told => capped,
            _ => self.lowest.min(capped),
        };
        self.told = true;
        self.allowed = size;
        self.table.set_max_size(capped as usize);
    }

    /// How much of the dynamic table is in use, in bytes as RFC 7541 section 4.1 counts.
    #[must_use]
    pub fn table_size(&self) -> usize {
        self.table.size()
    }

    /// How many entries were ever put into the table: while this stays the same, and the table's size
    /// does, the same fields are written as the same bytes.
    pub(in crate::h2) fn inserted(&self) -> u32 {
        self.finder.inserted
    }

    /// Begins a block: the size updates that are due (RFC 7541 section 4.2).
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let size = self.allowed.min(self.cap);
        let always = self.updates == SizeUpdates::Always && self.told;
        // What went down and up again between two blocks is said, because it evicted entries.
        let dip = if always { size } else { size.min(self.signalled) };
        if self.lowest < dip {
            self.update(self.lowest, out);
        }
        if self.signalled != size || self.lowered || always {
            self.update(size, out);
        }
        (self.lowest, self.lowered, self.told) = (size, false, false);
    }

    /// RFC 7541 section 6.3.
    fn update(&mut self, size: u32, out: &mut Vec<u8>) {
        integer::encode(size as usize, 5, 0x20, out);
        self.signalled = size;
    }

    /// Appends a field to the block that [`begin`](Self::begin) began.
    pub fn field(
        &mut self,
        name: &[u8],
        value: &[u8],
        how: Indexing,
        huffman: Huffman,
        out: &mut Vec<u8>,
    ) {
        let name_hash = hash(0, name);
        let known = static_table::find_name(name_hash, name);
        if matches!(how, Indexing::Incremental | Indexing::Without)
            && let Some(first) = known
            && let Some(index) = static_table::find_value(first, value)
        {
            return integer::encode(index, 7, 0x80, out);
        }
        let fits = size_of(name.len(), value.len()) <= self.table.max_size();
        let (prefix, pattern) = match how {
            Indexing::Incremental if fits => (6, 0x40),
            // What is larger than the table would empty it (RFC 7541 section 4.4).
            Indexing::Incremental | Indexing::Without | Indexing::Literal => (4, 0),
            Indexing::Never => (4, 0x10),
        };
        let mut hashes = [0, name_hash as u32];
        if pattern == 0x40 {
            hashes[BY_FIELD] = hash(name_hash, value) as u32;
            if let Some(age) = self.find(BY_FIELD, hashes[BY_FIELD], name, value) {
                return integer::encode(index(age), 7, 0x80, out);
            }
        }
        let named = match self.names {
            NameIndex::First => {
                known.or_else(|| self.find(BY_NAME, hashes[BY_NAME], name, value).map(index))
            }
            NameIndex::Last => self.last_named(known, hashes[BY_NAME], name, value),
        };
        integer::encode(named.unwrap_or(0), prefix, pattern, out);
        if named.is_none() {
            string(name, huffman, out);
        }
        string(value, huffman, out);
        if pattern == 0x40 {
            let older = self.finder.insert(hashes);
            let links = Links { hash: hashes[BY_FIELD], older };
            self.table.insert(Name::Text(name), value, links);
        }
    }

    /// See [`NameIndex::Last`]. No entry of the dynamic table is wholly the same: it would be an index.
    fn last_named(
        &self,
        known: Option<usize>,
        hash: u32,
        name: &[u8],
        value: &[u8],
    ) -> Option<usize> {
        let same = known.and_then(|first| static_table::find_value(first, value));
        same.or_else(|| self.oldest_named(hash, name).map(index))
            .or_else(|| known.map(static_table::last_of_name))
    }

    /// The age of the oldest entry with this name.
    fn oldest_named(&self, hash: u32, name: &[u8]) -> Option<usize> {
        let mut id = self.finder.newest[self.finder.bucket(hash)][BY_NAME];
        let (mut youngest, mut oldest) = (0, None);
        loop {
            let age = self.finder.age(id);
            // As in `find`.
            let Some(entry) = self.table.entry(age).filter(|_| age >= youngest) else {
                return oldest;
            };
            if self.table.text_of(entry).0 == name {
                oldest = Some(age);
            }
            id = entry.extra.older[BY_NAME];
            youngest = age + 1;
        }
    }

    /// The age of the newest entry with this name, and with this value if `by` asks for that.
    #[inline]
    fn find(&self, by: usize, hash: u32, name: &[u8], value: &[u8]) -> Option<usize> {
        let mut id = self.finder.newest[self.finder.bucket(hash)][by];
        let mut youngest = 0;
        loop {
            let age = self.finder.age(id);
            // An id that is too old was evicted. None is younger than the one before it, except when
            // the count of insertions has wrapped.
            let entry = self.table.entry(age).filter(|_| age >= youngest)?;
            if by == BY_NAME || entry.extra.hash == hash {
                let (its_name, its_value) = self.table.text_of(entry);
                if its_name == name && (by == BY_NAME || its_value == value) {
                    return Some(age);
                }
            }
            id = entry.extra.older[by];
            youngest = age + 1;
        }
    }
}

/// The index of the entry of this age, behind the static table (RFC 7541 section 2.3.3).
fn index(age: usize) -> usize {
    static_table::LEN + 1 + age
}

/// RFC 7541 section 5.2.
fn string(text: &[u8], huffman: Huffman, out: &mut Vec<u8>) {
    let coded = match huffman {
        Huffman::Never => None,
        Huffman::Always => Some(huffman::encoded_len(text)),
        Huffman::Shorter => Some(huffman::encoded_len(text)).filter(|&len| len < text.len()),
    };
    match coded {
        Some(len) => {
            integer::encode(len, 7, 0x80, out);
            huffman::encode(text, len, out);
        }
        None => {
            integer::encode(text.len(), 7, 0, out);
            out.extend_from_slice(text);
        }
    }
}

impl Finder {
    fn new(cap: u32) -> Self {
        // Of fields of usual length, about one in a bucket; 8 KiB of buckets at most.
        let buckets = (cap / 64).clamp(1, 1024).next_power_of_two() as usize;
        Self { newest: vec![[NO_ID; 2]; buckets].into(), inserted: 0 }
    }

    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.newest.len() - 1)
    }

    /// The age of the entry with this id, if it is still there.
    fn age(&self, id: u32) -> usize {
        self.inserted.wrapping_sub(id).wrapping_sub(1) as usize
    }

    /// Makes the entry that is about to be inserted the newest of its buckets; gives those before it.
    fn insert(&mut self, hashes: [u32; 2]) -> [u32; 2] {
        let id = self.inserted;
        self.inserted = id.wrapping_add(1);
        let mut older = [NO_ID; 2];
        for by in [BY_FIELD, BY_NAME] {
            let bucket = self.bucket(hashes[by]);
            older[by] = std::mem::replace(&mut self.newest[bucket][by], id);
        }
        older
    }
}
