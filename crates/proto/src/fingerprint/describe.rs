//! What was read, as JSON: for programs that compare clients, in this project and elsewhere.

use serde_json::{Map, Value, json};

use super::{
    ClientHello, Content, Extension, FieldLine, Frame, HeaderBlock, Record, Transport, akamai,
};
use crate::h2::Priority;
use crate::h2::hpack::{Form, Indexing, NameForm};

/// A ClientHello with its records (none for QUIC) and its prints.
///
/// Code points in lists whose numbers are known by heart are decimal (`ciphers`), the others four
/// hexadecimal digits. An extension has its `type`, `name` and `length`, and what its content says by
/// name, or `data` in hexadecimal, of which the first 64 bytes are shown. `message` is the whole
/// handshake message in hexadecimal, for another program to read.
#[must_use]
pub fn describe_hello(hello: &ClientHello, records: &[Record], transport: Transport) -> Value {
    let (ja3, ja3n, peet) = (hello.ja3(), hello.ja3n(), hello.peetprint());
    let ja4 = hello.ja4(transport);
    let records: Vec<Value> = (records.iter())
        .map(|record| json!({"version": hex4(record.version), "length": record.len}))
        .collect();
    json!({
        "records": records,
        "ja3": ja3.raw, "ja3_hash": ja3.hash,
        "ja3n": ja3n.raw, "ja3n_hash": ja3n.hash,
        "ja4": ja4.hash, "ja4_r": ja4.raw, "ja4_o": ja4.original_hash, "ja4_ro": ja4.original_raw,
        "peetprint": peet.raw, "peetprint_hash": peet.hash,
        "hello": {
            "legacy_version": hex4(hello.legacy_version),
            "random": hex(&hello.random),
            "session_id_len": hello.session_id.len(),
            "ciphers": hello.cipher_suites,
            "compression": hello.compression_methods.to_vec(),
            "extensions": hello.extensions.iter().map(extension).collect::<Vec<_>>(),
        },
        "message": hex(&hello.message),
    })
}

/// Frames of a client, and the text of Akamai.
///
/// A HEADERS frame has its `headers` as pairs and under `hpack` a word for each representation: `idxN`
/// for an indexed field; `inc`, `noidx` and `never` for literals, with the name as an index (`nN`) or a
/// string (`name`), and for each string `H` when it is Huffman-coded, `R` when it is not; before them
/// `SIZEN` for a new size of the table. `block` is the header block in hexadecimal.
#[must_use]
pub fn describe_frames(frames: &[Frame]) -> Value {
    let akamai = akamai(frames);
    let frames: Vec<Value> = frames.iter().map(frame).collect();
    json!({"akamai": akamai.raw, "akamai_hash": akamai.hash, "frames": frames})
}

fn extension(extension: &Extension) -> Value {
    let raw = &extension.raw;
    let mut entry = content(extension);
    if entry.is_empty() {
        let data = if raw.len() <= 64 { hex(raw) } else { format!("{}...", hex(&raw[..64])) };
        entry.insert("data".into(), data.into());
    }
    let name = extension.id.name().unwrap_or("unknown");
    entry.insert("type".into(), extension.id.0.into());
    entry.insert("name".into(), name.into());
    entry.insert("length".into(), raw.len().into());
    entry.into()
}

/// Empty where the bytes say it.
fn content(extension: &Extension) -> Map<String, Value> {
    let value = match &extension.content {
        Content::ServerName(name) => json!({"host": text(name)}),
        Content::Numbers(numbers) => match extension.id.0 {
            27 => json!({"algs": numbers}),
            10 => json!({"groups": hexes(numbers)}),
            43 => json!({"versions": hexes(numbers)}),
            _ => json!({"sigalgs": hexes(numbers)}),
        },
        Content::Octets(octets) if extension.id.0 == 11 => json!({"formats": octets.to_vec()}),
        Content::Octets(octets) => json!({"modes": octets.to_vec()}),
        Content::Protocols(names) => {
            json!({"protocols": names.iter().map(|name| text(name)).collect::<Vec<_>>()})
        }
        Content::KeyShares(shares) => {
            let shares = shares.iter();
            let shares: Vec<Value> = shares
                .map(|share| json!({"group": hex4(share.group), "length": share.len}))
                .collect();
            json!({"shares": shares})
        }
        Content::RecordSizeLimit(limit) => json!({"limit": limit}),
        Content::PreSharedKey(offer) => {
            // A binder counts with its byte of length.
            let binders: usize = offer.binders.iter().map(|&len| usize::from(len) + 1).sum();
            json!({"identity_lens": offer.identities, "binder_bytes": binders})
        }
        Content::Ech(ech) => json!({
            "ch_type": 0, "kdf": hex4(ech.kdf), "aead": hex4(ech.aead), "config_id": ech.config_id,
            "enc_len": ech.enc_len, "payload_len": ech.payload_len,
        }),
        Content::Malformed => json!({"malformed": true}),
        _ => json!({}),
    };
    value.as_object().cloned().unwrap_or_default()
}

fn frame(frame: &Frame) -> Value {
    match frame {
        Frame::Settings { ack, settings } => {
            let settings = settings.iter();
            let settings: Vec<Value> =
                settings.map(|(id, value)| json!([id.0, setting_name(id.0), value])).collect();
            json!({"frame": "SETTINGS", "stream": 0, "flags": flags(u8::from(*ack)),
                "length": settings.len() * 6, "settings": settings})
        }
        Frame::WindowUpdate { stream, increment } => json!({"frame": "WINDOW_UPDATE",
            "stream": stream, "flags": flags(0), "length": 4, "increment": increment}),
        Frame::Priority { stream, priority } => {
            let mut value = self::priority(*priority);
            value["frame"] = "PRIORITY".into();
            value["stream"] = (*stream).into();
            value
        }
        Frame::PriorityUpdate { stream, value } => json!({"frame": "PRIORITY_UPDATE",
            "prioritized": stream, "value": text(value)}),
        Frame::Data { stream, len, end_stream } => json!({"frame": "DATA", "stream": stream,
            "length": len, "flags": flags(u8::from(*end_stream))}),
        Frame::Headers(block) => headers(block),
        Frame::Other { kind, flags: bits, stream, payload } => {
            let name = match kind {
                3 => "RST_STREAM".to_owned(),
                6 => "PING".to_owned(),
                7 => "GOAWAY".to_owned(),
                _ => format!("0x{kind:02x}"),
            };
            json!({"frame": name, "flags": flags(*bits), "stream": stream,
                "length": payload.len(), "payload": hex(payload)})
        }
    }
}

fn headers(block: &HeaderBlock) -> Value {
    let bits = u8::from(block.end_stream)
        | 0x4
        | if block.padding.is_some() { 0x8 } else { 0 }
        | if block.priority.is_some() { 0x20 } else { 0 };
    let sizes = block.table_sizes.iter().map(|size| format!("SIZE{size}"));
    let forms: Vec<String> = sizes.chain(block.fields.iter().map(form)).collect();
    let fields: Vec<Value> =
        block.fields.iter().map(|field| json!([text(&field.name), text(&field.value)])).collect();
    let around = if block.priority.is_some() { 5 } else { 0 }
        + block.padding.map_or(0, |len| usize::from(len) + 1);
    let mut value = json!({"frame": "HEADERS", "stream": block.stream, "flags": flags(bits),
        "length": block.block.len() + around, "headers": fields, "hpack": forms,
        "block": hex(&block.block)});
    if let Some(priority) = block.priority {
        value["priority"] = self::priority(priority);
    }
    value
}

fn form(field: &FieldLine) -> String {
    let letter = |huffman: bool| if huffman { 'H' } else { 'R' };
    match field.form {
        Form::Indexed(index) => format!("idx{index}"),
        Form::Literal { indexing, name, huffman } => {
            let indexing = match indexing {
                Indexing::Incremental => "inc",
                // On the wire they are the same.
                Indexing::Without | Indexing::Literal => "noidx",
                Indexing::Never => "never",
            };
            let name = match name {
                NameForm::Index(index) => format!("n{index}"),
                NameForm::Text { huffman } => format!("name{}", letter(huffman)),
            };
            format!("{indexing}({name},{})", letter(huffman))
        }
    }
}

fn priority(priority: Priority) -> Value {
    json!({"exclusive": u8::from(priority.exclusive), "depends_on": priority.depends_on,
        "weight": u16::from(priority.weight) + 1})
}

fn setting_name(id: u16) -> &'static str {
    match id {
        1 => "HEADER_TABLE_SIZE",
        2 => "ENABLE_PUSH",
        3 => "MAX_CONCURRENT_STREAMS",
        4 => "INITIAL_WINDOW_SIZE",
        5 => "MAX_FRAME_SIZE",
        6 => "MAX_HEADER_LIST_SIZE",
        8 => "ENABLE_CONNECT_PROTOCOL",
        9 => "NO_RFC7540_PRIORITIES",
        _ => "GREASE/unknown",
    }
}

fn flags(bits: u8) -> String {
    format!("0x{bits:02x}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hex4(number: u16) -> String {
    format!("{number:04x}")
}

fn hexes(numbers: &[u16]) -> Vec<String> {
    numbers.iter().copied().map(hex4).collect()
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}
