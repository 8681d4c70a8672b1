//! Errors by blame: what the peer did, what was too much, what ended early, what the caller misused.

use std::fmt;

/// Declares an error enum whose documentation and `Display` come from one table.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = concat!("\"", $text, "\"")] $(#[$vmeta])* $variant,)+
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $text,)+ })
            }
        }

        impl std::error::Error for $name {}
    };
}

/// Why an exchange cannot go on. The connection is not reusable after any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The peer broke the protocol.
    PeerMisbehaved(PeerMisbehaved),
    /// The peer may be correct, but asks for more than the configured limits grant.
    LimitExceeded(LimitExceeded),
    /// The peer closed the connection in the middle of a message.
    UnexpectedEof(UnexpectedEof),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The source says which: repeating it here would print it twice in a chain.
        f.write_str(match self {
            Self::PeerMisbehaved(_) => "the peer broke the protocol",
            Self::LimitExceeded(_) => "a limit was exceeded",
            Self::UnexpectedEof(_) => "the connection was closed too early",
        })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::PeerMisbehaved(reason) => reason,
            Self::LimitExceeded(limit) => limit,
            Self::UnexpectedEof(place) => place,
        })
    }
}

impl From<PeerMisbehaved> for Error {
    fn from(reason: PeerMisbehaved) -> Self {
        Self::PeerMisbehaved(reason)
    }
}

impl From<LimitExceeded> for Error {
    fn from(limit: LimitExceeded) -> Self {
        Self::LimitExceeded(limit)
    }
}

impl From<UnexpectedEof> for Error {
    fn from(place: UnexpectedEof) -> Self {
        Self::UnexpectedEof(place)
    }
}

reasons! {
    /// What the peer did that the protocol does not allow.
    PeerMisbehaved {
        /// RFC 9112 section 4.
        BadStatusLine = "malformed status line",
        /// RFC 9112 section 3.
        BadRequestLine = "malformed request line",
        /// RFC 9112 section 2.3.
        UnsupportedVersion = "the major version is not HTTP/1",
        /// RFC 9112 section 2.2 lets a server skip such a line, not a client.
        EmptyLineBeforeHead = "empty line before the status line",
        /// RFC 9110 section 5.1: a name is a token.
        BadFieldName = "invalid byte in a field name, or no name",
        /// RFC 9110 section 5.5.
        ControlByte = "control byte in the head",
        /// RFC 9110 section 5.5.
        NulByte = "NUL byte in the head",
        /// RFC 9112 section 2.2.
        BareCr = "CR without LF",
        /// RFC 9112 section 2.2 would allow it; what two parsers read differently is refused.
        BareLf = "LF without CR",
        /// RFC 9112 section 5.2.
        ObsFold = "folded field line",
        /// RFC 9112 section 5.1.
        SpaceBeforeColon = "whitespace between field name and colon",
        /// RFC 9112 section 6.3, item 5.
        BadContentLength = "Content-Length is not a decimal number of bytes",
        /// RFC 9112 section 6.3, item 5: also when the values agree.
        ConflictingContentLength = "more than one Content-Length",
        /// RFC 9112 section 6.3, item 3.
        TransferEncodingWithContentLength = "both Transfer-Encoding and Content-Length",
        /// RFC 9112 section 6.3, item 4, and section 7: only `chunked` is spoken.
        TransferEncodingNotFinalChunked = "Transfer-Encoding is other than exactly \"chunked\"",
        /// RFC 9112 section 6.1.
        TransferEncodingInHttp10 = "Transfer-Encoding in an HTTP/1.0 message",
        /// RFC 9112 section 7.1.
        BadChunkSize = "malformed or overflowing chunk size",
        /// RFC 9112 section 7.1.1.
        BadChunkExtension = "invalid byte in a chunk extension",
        /// RFC 9112 section 7.1.
        BadChunkTerminator = "chunk data not followed by CR LF",
        /// RFC 9110 section 6.5.1.
        TrailerInvalid = "a framing field in the trailer section",
        /// RFC 9110 section 15.2.2: 101 answers an Upgrade that the request offered.
        UnofferedUpgrade = "101 without an Upgrade in the request",
        /// RFC 9112 section 9.2: a response without a request.
        UnsolicitedBytes = "bytes that answer no request",
        /// RFC 9112 section 3.2.
        BadHost = "no Host, or more than one, in an HTTP/1.1 request",
        /// RFC 9113 section 3.4.
        NoSettings = "the connection does not begin with SETTINGS",
        /// RFC 9113 section 4.2.
        FrameSize = "a frame of a wrong size",
        /// RFC 9113 section 4.3.
        BadHeaderBlock = "a header block that cannot be decoded",
        /// RFC 9113 section 6.2, 6.10: nothing may stand between the frames of a header block.
        BrokenHeaderBlock = "a header block is interrupted, or continued without a beginning",
        /// RFC 9113 section 6.1.
        BadPadding = "more padding than the frame has room for",
        /// RFC 9113 section 5.1.1.
        StreamId = "a frame on a stream that it cannot be about",
        /// RFC 9113 section 5.1.
        FrameOnIdleStream = "a frame on a stream that was never opened",
        /// RFC 9113 section 5.1.
        FrameOnClosedStream = "a frame on a stream that is closed",
        /// RFC 9113 section 6.5.2.
        BadSetting = "a setting with a value that it cannot have",
        /// RFC 9113 section 6.5.2.
        BadInitialWindow = "an initial window beyond 2^31-1",
        /// RFC 9113 section 6.9.1.
        WindowOverflow = "a flow-control window beyond 2^31-1",
        /// RFC 9113 section 6.9.1.
        WindowOverspent = "more data than the flow-control window allows",
        /// RFC 9113 section 6.9.
        ZeroIncrement = "a WINDOW_UPDATE of zero",
        /// RFC 9113 section 6.6, 8.4.
        UnwantedPush = "a push that was not allowed",
        /// RFC 9113 section 6.8.
        GoAwayRaised = "a GOAWAY that promises more than the one before",
        /// RFC 9218 section 7.1.
        PriorityUpdate = "a PRIORITY_UPDATE from a server",
        /// RFC 9113 section 8.2.2.
        ConnectionField = "a connection-specific field",
        /// RFC 9113 section 8.2.1.
        BlankAroundValue = "whitespace around a field value",
        /// RFC 9113 section 8.3.
        BadPseudoField = "a pseudo-field that is missing, misplaced, repeated or unknown",
        /// RFC 9113 section 8.3.2, 8.6.
        BadStatus = "a status that cannot be",
        /// RFC 9113 section 8.1.
        DataBeforeHead = "a body without a head",
        /// RFC 9113 section 8.1.
        HeadersInBody = "a second head, or trailers that do not end the message",
        /// RFC 9113 section 8.1.1.
        BodyLengthMismatch = "a body that differs from its Content-Length",
        /// RFC 6455 section 5.2: reserved bits that no extension gave a meaning.
        ReservedBits = "a frame with reserved bits set",
        /// RFC 6455 section 5.2.
        ReservedOpcode = "a frame with an opcode that is not defined",
        /// RFC 6455 section 5.2: the shortest form, and no length beyond 2^63-1.
        FrameLength = "a frame length that is not in its shortest form, or beyond 2^63-1",
        /// RFC 6455 section 5.1.
        MaskMissing = "a frame of a client without a mask",
        /// RFC 6455 section 5.1.
        MaskForbidden = "a frame of a server with a mask",
        /// RFC 6455 section 5.5.
        ControlTooLong = "a control frame of more than 125 bytes",
        /// RFC 6455 section 5.5.
        ControlFragmented = "a control frame in fragments",
        /// RFC 6455 section 5.4.
        FragmentWithoutStart = "a continuation without a message to continue",
        /// RFC 6455 section 5.4.
        FragmentInterrupted = "a new message before the last one ended",
        /// RFC 6455 section 8.1.
        InvalidUtf8 = "text that is not UTF-8",
        /// RFC 6455 section 5.5.1.
        BadCloseFrame = "a close frame with one byte",
        /// RFC 6455 section 7.4.
        BadCloseCode = "a close code that must not be sent",
        /// RFC 7692 section 7.2.2.
        BadCompression = "a compressed message that cannot be inflated",
    }
}

reasons! {
    /// Which limit of [`h1::Limits`](crate::h1::Limits), [`h2::Limits`](crate::h2::Limits) or of a
    /// WebSocket was exceeded.
    LimitExceeded {
        /// `head_bytes`.
        HeadBytes = "head too large",
        /// `head_bytes`, in the trailer section.
        TrailerBytes = "trailer section too large",
        /// `fields`.
        Fields = "too many fields",
        /// `chunk_line`.
        ChunkLine = "chunk size line too long",
        /// `chunk_extensions`.
        ChunkExtensions = "too many bytes of chunk extensions",
        /// `informational`.
        Informational = "too many informational responses",
        /// `header_block`.
        HeaderBlock = "header block too large",
        /// `continuations`.
        Continuations = "too many CONTINUATION frames",
        /// `settings_entries`.
        SettingsEntries = "too many settings in a frame",
        /// `settings`.
        SettingsFlood = "too many SETTINGS frames",
        /// `pings`.
        PingFlood = "too many PING frames",
        /// `resets`.
        RapidReset = "too many streams reset by the server",
        /// `provoked_resets`.
        ProvokedResets = "too many breaches on streams",
        /// `empty_frames`.
        EmptyFrames = "too many empty frames",
        /// `idle_frames`.
        IdleFrames = "too many frames without effect",
        /// `unsent_replies`.
        UnsentReplies = "the server asks much and reads nothing",
        /// `unread`.
        Unread = "too much waits unread",
        /// `settings_wait`.
        SettingsWait = "the settings were not acknowledged in time",
        /// `ping_wait`.
        PingWait = "no answer to a PING in time",
        /// `message`.
        MessageBytes = "message too large",
        /// `frame`.
        FrameBytes = "frame too large",
        /// A message of more fragments without a byte than any sender has a reason for.
        EmptyFragments = "too many empty fragments",
        /// `pong_wait`.
        PongWait = "no answer to a ping in time",
        /// `close_wait`.
        CloseWait = "the close was not answered in time",
    }
}

reasons! {
    /// Where a message was cut off (RFC 9112 section 8).
    UnexpectedEof {
        /// The peer may not have seen the request at all.
        BeforeHead = "closed before the first byte of a head",
        /// Some bytes of a head had come.
        InHead = "closed inside a head",
        /// Fewer bytes than Content-Length, or no last chunk.
        InBody = "closed inside a body",
        /// After the last chunk.
        InTrailers = "closed inside a trailer section",
        /// Inside a frame of HTTP/2.
        InFrame = "closed inside a frame",
        /// RFC 6455 section 7.1.5: code 1006.
        BeforeClose = "closed without a close frame",
    }
}

reasons! {
    /// A call that the state of the machine, or the value itself, does not allow. Nothing was queued.
    ApiMisuse {
        /// Send the head first.
        NoExchange = "no exchange is open",
        /// The last exchange must end, and leave the connection reusable, before the next.
        ExchangeOpen = "the last exchange is not over",
        /// [`reuse`](crate::h1::Client::reuse) says why.
        NotReusable = "the connection cannot carry another exchange",
        /// RFC 9110 section 9.1: a method is a token.
        InvalidMethod = "the method is not a token",
        /// RFC 9112 section 3.2: nothing but visible ASCII.
        InvalidTarget = "the request target is empty or has a byte outside visible ASCII",
        /// RFC 9112 section 6.2.
        ContentLengthMismatch = "Content-Length disagrees with the announced body",
        /// RFC 9112 section 6.1.
        TransferEncodingMismatch = "Transfer-Encoding disagrees with the announced body",
        /// RFC 9110 section 10.1.1.
        ExpectWithoutBody = "Expect: 100-continue without a body",
        /// More data than announced.
        BodyTooLong = "more body than was announced",
        /// Less data than announced.
        BodyTooShort = "less body than was announced",
        /// The body was announced as none, or has ended.
        BodyOver = "the body is over",
        /// The peer answered before the body was let go, or the caller stopped it.
        BodyWithdrawn = "the body is not to be sent any more",
        /// RFC 9112 section 7.1.2: trailers need chunked.
        TrailersNeedChunked = "trailers without chunked framing",
        /// RFC 9110 section 6.5.1.
        ForbiddenTrailer = "a framing field among the trailers",
        /// A final status where an interim was asked for, or the other way round.
        WrongStatusClass = "informational and final status confused",
        /// A second final head in one exchange.
        HeadAlreadySent = "the head was already sent",
        /// The stream is another connection's, or was given up.
        NoStream = "no such stream",
        /// [`can_open`](crate::h2::Client::can_open) says why.
        CannotOpen = "the connection can open no stream now",
        /// RFC 8441 section 3.
        NoConnectProtocol = "the server does not allow extended CONNECT",
        /// RFC 8441 section 4.
        ProtocolWithoutConnect = "a protocol with a method other than CONNECT",
        /// RFC 9113 section 8.3.1.
        InvalidAuthority = "the authority is empty, has userinfo or a byte outside visible ASCII",
        /// RFC 9113 section 8.3.1.
        HostMismatch = "Host disagrees with the authority",
        /// RFC 9113 section 8.2.2.
        ConnectionField = "a connection-specific field",
        /// RFC 6455 section 5.5.1: nothing follows a close frame.
        Closing = "the close was already sent, or the connection failed",
        /// RFC 6455 section 5.4: finish the one that was begun first.
        MessageOpen = "a message in fragments is not finished",
        /// RFC 6455 section 5.5: 125 bytes, two of them for the code of a close.
        ControlTooLong = "too long for a control frame",
        /// RFC 6455 section 7.4: see `ws::CloseCode::can_be_sent`.
        BadCloseCode = "a close code that must not be sent",
    }
}
